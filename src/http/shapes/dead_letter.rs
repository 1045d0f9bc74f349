//! A dead letter as clients see it.

use crate::domain::{
    dead_letter::DeadLetter,
    failure::FailureCode,
    ids::{AgendaId, DeadLetterId, TaskId},
    task::Phase,
    time::Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A task that failed for good.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "deadLetterId": "0198c0e0-0000-7000-8000-000000000001", "taskId": "0198c0de-7a3e-7c11-9d2b-3f5a60718293", "agendaId": "42",
    "reason": "agenda-source-unavailable", "message": "The agenda source timed out.", "attempts": 5, "phase": "COLLECT",
    "failedAt": "2026-11-30T12:00:42Z", "replayedAt": null, "dismissedAt": null
}))]
pub struct DeadLetterShape {
    #[schema(value_type = Uuid)]
    pub dead_letter_id: DeadLetterId,
    #[schema(value_type = Uuid)]
    pub task_id: TaskId,
    #[schema(value_type = Option<String>, required)]
    pub agenda_id: Option<AgendaId>,
    /// A code of the failure catalogue.
    #[schema(value_type = String)]
    pub reason: FailureCode,
    pub message: String,
    pub attempts: u32,
    #[schema(value_type = Option<String>, required)]
    pub phase: Option<Phase>,
    #[schema(value_type = String, format = DateTime)]
    pub failed_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub replayed_at: Option<Timestamp>,
    /// Somebody closed it without a replay.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub dismissed_at: Option<Timestamp>,
}

impl From<DeadLetter> for DeadLetterShape {
    fn from(letter: DeadLetter) -> Self {
        Self {
            dead_letter_id: letter.id,
            task_id: letter.task_id,
            agenda_id: letter.agenda_id,
            reason: letter.reason,
            message: letter.message,
            attempts: letter.attempts,
            phase: letter.phase,
            failed_at: letter.failed_at,
            replayed_at: letter.replayed_at,
            dismissed_at: letter.dismissed_at,
        }
    }
}
