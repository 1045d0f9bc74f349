//! What is told to the outside when a protocol task ends: a CloudEvents 1.0 body in structured JSON, written in the terminal transaction.

use super::{failure::Failure, ids::EventId, task::Task, time::Timestamp};
use serde_json::{Value, json};

/// The three event types (the seed's names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    Completed,
    Failed,
    Cancelled,
}

impl EventType {
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "ObesrabuoProtocolGenerationCompleted",
            Self::Failed => "ObesrabuoProtocolGenerationFailed",
            Self::Cancelled => "ObesrabuoProtocolGenerationCancelled",
        }
    }
}

/// The `source` of our events.
const SOURCE: &str = "/protocol-bridge";

/// The body of an event about `task`, which has just ended at `now`. `documents` as in `ProtocolResponse`, for a completed task.
#[must_use]
pub fn cloud_event(
    id: EventId,
    kind: EventType,
    task: &Task,
    now: Timestamp,
    documents: Option<&Value>,
    failure: Option<&Failure>,
) -> Value {
    let mut data = json!({
        "taskId": task.id,
        "agendaId": task.agenda_id,
        "clientReference": task.client_reference,
        "protocolId": task.protocol_id,
    });
    if let Some(documents) = documents {
        data["documents"] = documents.clone();
    }
    if let Some(failure) = failure {
        data["failure"] = serde_json::to_value(failure).expect("a failure holds only strings");
    }
    let mut event = json!({
        "specversion": "1.0",
        "id": id,
        "source": SOURCE,
        "type": kind.as_str(),
        "subject": task.agenda_id,
        "time": now,
        "datacontenttype": "application/json",
        "data": data,
    });
    // The extension for distributed tracing: whoever takes the event goes on with the trace in which the task was submitted.
    if let Some(trace) = &task.trace {
        event["traceparent"] = trace.parent().into();
        if let Some(state) = trace.state() {
            event["tracestate"] = state.into();
        }
    }
    event
}
