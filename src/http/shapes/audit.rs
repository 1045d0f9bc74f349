//! An entry of the audit log as clients see it.

use crate::domain::{
    audit::{Action, Entry},
    ids::{AuditId, RequestId},
    time::Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// One change that was made by hand.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "auditId": "0198c0e1-0000-7000-8000-000000000001", "at": "2026-11-30T12:05:00Z", "actor": "operator", "address": "10.0.0.7",
    "action": "dead-letter.replay", "object": "0198c0e0-0000-7000-8000-000000000001", "detail": "from MERGE",
    "requestId": "0198c0e1-0000-7000-8000-000000000002"
}))]
pub struct AuditShape {
    #[schema(value_type = Uuid)]
    pub audit_id: AuditId,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The caller's name; `cli:` and a user for the command line.
    pub actor: String,
    pub address: String,
    /// Such as `task.cancel`, `dead-letter.replay`, `engine.pause`, `subscription.create` or `delivery.resend`.
    pub action: &'static str,
    /// What it was done to: the id of a task, dead letter, subscription or delivery, or `engine`.
    pub object: String,
    #[schema(required)]
    pub detail: Option<String>,
    /// The request that did it: `X-Request-Id` of its answer.
    #[schema(value_type = Uuid)]
    pub request_id: RequestId,
}

impl From<Entry> for AuditShape {
    fn from(entry: Entry) -> Self {
        Self {
            audit_id: entry.id,
            at: entry.at,
            actor: entry.author.name,
            address: entry.author.address,
            action: Action::as_str(entry.action),
            object: entry.object,
            detail: entry.detail,
            request_id: entry.author.request_id,
        }
    }
}
