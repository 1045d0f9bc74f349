//! A delivery as clients see it: how often it was tried and how the last try ended, never what the receiver wrote.

use crate::domain::{
    delivery::{Delivery, State},
    event::EventType,
    ids::{DeliveryId, EventId, TaskId},
    time::Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// The telling of one event to one sink.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "deliveryId": "0198c0e3-0000-7000-8000-000000000001", "eventId": "0198c0de-9000-7000-8000-000000000001",
    "eventType": "ObesrabuoProtocolGenerationCompleted", "taskId": "0198c0de-7a3e-7c11-9d2b-3f5a60718293",
    "sink": "subscription:0198c0e2-0000-7000-8000-000000000001", "state": "pending", "attempts": 2, "lastStatus": "HTTP 503",
    "lastTriedAt": "2026-11-30T12:00:05Z", "nextAttemptAt": "2026-11-30T12:01:05Z", "deliveredAt": null, "createdAt": "2026-11-30T12:00:00Z"
}))]
pub struct DeliveryShape {
    #[schema(value_type = Uuid)]
    pub delivery_id: DeliveryId,
    #[schema(value_type = Uuid)]
    pub event_id: EventId,
    pub event_type: &'static str,
    #[schema(value_type = Uuid)]
    pub task_id: TaskId,
    /// `jetstream`, `subscription:ID` or `callback:URL`.
    pub sink: String,
    /// `pending`, `delivered` or `failed` (given up).
    pub state: &'static str,
    /// Tries until now, since it was last begun.
    pub attempts: u32,
    /// The last status or cause.
    #[schema(required)]
    pub last_status: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub last_tried_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub next_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub delivered_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl From<Delivery> for DeliveryShape {
    fn from(delivery: Delivery) -> Self {
        Self {
            state: State::as_str(delivery.state()),
            delivery_id: delivery.id,
            event_id: delivery.event_id,
            event_type: EventType::as_str(delivery.event_type),
            task_id: delivery.task_id,
            sink: delivery.sink.to_string(),
            attempts: delivery.attempts,
            last_status: delivery.last_status,
            last_tried_at: delivery.last_tried_at,
            next_attempt_at: delivery.next_at,
            delivered_at: delivery.delivered_at,
            created_at: delivery.created_at,
        }
    }
}

/// How many deliveries were begun anew.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "resent": 17 }))]
pub struct Resent {
    pub resent: u64,
}
