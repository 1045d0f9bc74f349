//! What is told to the outside when a protocol task ends: CloudEvents 1.0 in structured JSON, written in the terminal transaction.
//!
//! These types are the contract: `docs/events/` holds the JSON Schemas made from them. An event too large to be carried is told by reference: the same attributes,
//! with `dataref` (the CloudEvents extension of that name) in place of `data`.

use super::{
    failure::Failure,
    ids::{AgendaId, EventId, ProtocolId, TaskId},
    protocol::{Document, Format},
    task::{Status, Task, UnknownWord},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The three event types (the seed's names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// What a task in this status is told as; `None`: it has not ended.
    #[must_use]
    pub const fn of(status: Status) -> Option<Self> {
        match status {
            Status::Completed => Some(Self::Completed),
            Status::Failed => Some(Self::Failed),
            Status::Cancelled => Some(Self::Cancelled),
            Status::Pending | Status::InProgress => None,
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownWord(text.to_owned(), "event type"))
    }
}

/// The media type of an event in structured JSON.
pub const MEDIA_TYPE: &str = "application/cloudevents+json";
/// The version of CloudEvents.
const SPECVERSION: &str = "1.0";
/// The `source` of our events.
pub const SOURCE: &str = "/protocol-bridge";
/// A body above this goes by reference: brokers take 1 MiB unless told otherwise, and receivers of webhooks often less.
pub const LARGEST_BODY: usize = 256 * 1024;

/// A CloudEvents 1.0 event. Every delivery of one event has the same `id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CloudEvent<Data> {
    /// Always 1.0.
    #[schemars(extend("const" = "1.0"))]
    pub specversion: String,
    /// The same on every delivery; whoever has seen it drops the event.
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub id: EventId,
    /// Always /protocol-bridge.
    #[schemars(extend("const" = "/protocol-bridge"))]
    pub source: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// The agenda's id.
    #[schemars(with = "String")]
    pub subject: AgendaId,
    /// When the task ended.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub time: Timestamp,
    /// Always application/json.
    pub datacontenttype: String,
    /// The trace in which the task was submitted (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
    /// Where the whole event is, if it is too large to be sent: relative to the service's address. There is no `data` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
}

/// A protocol is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletedData {
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub task_id: TaskId,
    #[schemars(with = "String")]
    pub agenda_id: AgendaId,
    /// What the submission gave as its own reference.
    pub client_reference: Option<String>,
    /// `GET /protocol/{protocolId}` answers with it.
    #[schemars(with = "Option<String>", extend("format" = "uuid"))]
    pub protocol_id: Option<ProtocolId>,
    pub documents: Vec<EventDocument>,
}

/// A document of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventDocument {
    /// pdf, docx, html or json.
    #[schemars(with = "String")]
    pub format: Format,
    /// Relative to the service's address.
    pub url: String,
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
    pub pages: Option<u32>,
}

impl EventDocument {
    #[must_use]
    pub fn of(protocol: ProtocolId, document: &Document) -> Self {
        let Document { format, bytes, sha256, pages, .. } = document;
        let url = format!("/protocol/{protocol}/document.{format}");
        Self { format: *format, url, bytes: *bytes, sha256: sha256.clone(), pages: *pages }
    }
}

/// There is no protocol: the task failed for good, or was cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedData {
    #[schemars(with = "String", extend("format" = "uuid"))]
    pub task_id: TaskId,
    #[schemars(with = "String")]
    pub agenda_id: AgendaId,
    /// What the submission gave as its own reference.
    pub client_reference: Option<String>,
    /// Why; the codes are those of the problems at /problems.
    pub failure: Option<Failure>,
}

/// The JSON Schema of an event of this type.
#[must_use]
pub fn schema(kind: EventType) -> serde_json::Value {
    // In one piece, so that it means the same within other documents.
    let mut generator =
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let schema = match kind {
        EventType::Completed => generator.root_schema_for::<CloudEvent<CompletedData>>(),
        EventType::Failed | EventType::Cancelled => generator.root_schema_for::<CloudEvent<EndedData>>(),
    };
    let mut schema = schema.to_value();
    schema["title"] = kind.as_str().into();
    schema["properties"]["type"]["const"] = kind.as_str().into();
    schema["properties"]["datacontenttype"]["const"] = "application/json".into();
    schema["oneOf"] = serde_json::json!([{ "required": ["data"] }, { "required": ["dataref"] }]);
    schema
}

/// The body of the event about `task`, which has just ended at `now`: JSON. `None`: it has not ended, or is about no agenda.
#[must_use]
pub fn body(id: EventId, task: &Task, documents: &[EventDocument], now: Timestamp) -> Option<String> {
    let kind = EventType::of(task.status)?;
    let agenda_id = task.agenda_id.clone()?;
    let (task_id, client_reference) = (task.id, task.client_reference.clone());
    match kind {
        EventType::Completed => {
            let (protocol_id, documents) = (task.protocol_id, documents.to_vec());
            write(id, kind, task, now, CompletedData { task_id, agenda_id, client_reference, protocol_id, documents })
        }
        EventType::Failed | EventType::Cancelled => {
            write(id, kind, task, now, EndedData { task_id, agenda_id, client_reference, failure: task.failure.clone() })
        }
    }
}

fn write<Data: Serialize>(id: EventId, kind: EventType, task: &Task, time: Timestamp, data: Data) -> Option<String> {
    let event = CloudEvent {
        specversion: SPECVERSION.to_owned(),
        id,
        source: SOURCE.to_owned(),
        kind: kind.as_str().to_owned(),
        subject: task.agenda_id.clone()?,
        time,
        datacontenttype: "application/json".to_owned(),
        // The extension for distributed tracing: whoever takes the event goes on with the trace in which the task was submitted.
        traceparent: task.trace.as_ref().map(|trace| trace.parent().to_owned()),
        tracestate: task.trace.as_ref().and_then(|trace| trace.state()).map(str::to_owned),
        dataref: None,
        data: Some(data),
    };
    Some(serde_json::to_string(&event).expect("an event holds only texts and numbers"))
}

/// What is sent of a body: itself, or, if it is over `limit`, the same event by reference.
#[must_use]
pub fn carried(id: EventId, body: &str, limit: usize) -> String {
    if body.len() <= limit {
        return body.to_owned();
    }
    match serde_json::from_str::<CloudEvent<serde_json::Value>>(body) {
        Ok(event) => {
            let reference = CloudEvent { dataref: Some(format!("/api/events/{id}")), data: None, ..event };
            serde_json::to_string(&reference).expect("an event holds only texts and numbers")
        }
        // Nobody but us writes them; one that cannot be read goes as it is, and whoever takes it says so.
        Err(_) => body.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::failure::{FailureCode, Fault};
    use serde_json::Value;

    #[test]
    fn a_large_event_goes_by_reference_and_stays_the_same_event() {
        let id = EventId(uuid::Uuid::max());
        let errors = vec![Fault { code: "x".to_owned(), pointer: "/questions/0".to_owned(), detail: "ж".repeat(1000) }; 1000];
        let data = EndedData {
            task_id: TaskId(uuid::Uuid::nil()),
            agenda_id: "42".parse().unwrap(),
            client_reference: Some("🗳".to_owned()),
            failure: Some(Failure::new(FailureCode::AgendaInvalid, "Так нельзя.").with_errors(errors)),
        };
        let event = CloudEvent {
            specversion: SPECVERSION.to_owned(),
            id,
            source: SOURCE.to_owned(),
            kind: EventType::Failed.as_str().to_owned(),
            subject: "42".parse().unwrap(),
            time: Timestamp::from_micros(1),
            datacontenttype: "application/json".to_owned(),
            traceparent: None,
            tracestate: None,
            dataref: None,
            data: Some(data),
        };
        let body = serde_json::to_string(&event).unwrap();
        assert!(body.len() > 2_000_000);
        assert_eq!(carried(id, &body, body.len()), body);
        let told: CloudEvent<Value> = serde_json::from_str(&carried(id, &body, LARGEST_BODY)).unwrap();
        assert_eq!(told.dataref.as_deref(), Some("/api/events/ffffffff-ffff-ffff-ffff-ffffffffffff"));
        assert_eq!((told.id, told.kind.as_str(), told.data), (id, "ObesrabuoProtocolGenerationFailed", None));
    }
}
