//! The message that goes through outbox and transport: the seed's envelope, exactly four keys.

use super::ids::{MessageId, TaskId};
use serde::{Deserialize, Serialize};

/// The one envelope type there is.
pub const PROCESS_TASK: &str = "ProcessTask";

/// Above this the payload is left out: the worker reads the row anyway, and brokers refuse large messages.
pub const MAX_ENVELOPE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envelope {
    /// The key by which the inbox drops duplicates.
    pub message_id: MessageId,
    /// Which task is to be processed.
    pub task_id: TaskId,
    pub envelope_type: String,
    /// A *string* that holds `{"taskId","payload"}`.
    pub payload_json: String,
}

impl Envelope {
    /// An envelope that asks for `task_id` to be processed; a payload that would make it too large is left out as `null`.
    #[must_use]
    pub fn process_task(message_id: MessageId, task_id: TaskId, payload: &str) -> Self {
        let with = |payload: Option<&str>| Self {
            message_id,
            task_id,
            envelope_type: PROCESS_TASK.to_owned(),
            payload_json: serde_json::json!({ "taskId": task_id, "payload": payload }).to_string(),
        };
        let whole = with(Some(payload));
        if whole.to_json().len() <= MAX_ENVELOPE_BYTES { whole } else { with(None) }
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("an envelope holds only ids and strings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_seeds_envelope() {
        let (message_id, task_id) = (MessageId(uuid::Uuid::from_u128(1)), TaskId(uuid::Uuid::from_u128(2)));
        let envelope = Envelope::process_task(message_id, task_id, r#"{"note":"a"}"#);
        let json: serde_json::Value = serde_json::from_str(&envelope.to_json()).unwrap();
        assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["messageId", "taskId", "envelopeType", "payloadJson"]);
        let inner: serde_json::Value = serde_json::from_str(json["payloadJson"].as_str().unwrap()).unwrap();
        assert_eq!(inner, serde_json::json!({ "taskId": task_id, "payload": r#"{"note":"a"}"# }));
    }

    #[test]
    fn a_large_payload_is_left_out() {
        let envelope = Envelope::process_task(MessageId(uuid::Uuid::nil()), TaskId(uuid::Uuid::nil()), &"\"".repeat(40_000));
        assert!(envelope.to_json().len() <= MAX_ENVELOPE_BYTES);
        assert!(envelope.payload_json.ends_with(r#""payload":null}"#));
    }
}
