//! A task that failed for good, kept with its reason until it is replayed or dismissed.

use super::{
    failure::FailureCode,
    ids::{AgendaId, DeadLetterId, TaskId},
    task::Phase,
    time::Timestamp,
};

#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    pub id: DeadLetterId,
    pub task_id: TaskId,
    pub agenda_id: Option<AgendaId>,
    pub reason: FailureCode,
    pub message: String,
    pub attempts: u32,
    pub phase: Option<Phase>,
    pub failed_at: Timestamp,
    pub replayed_at: Option<Timestamp>,
    /// Somebody closed it without a replay; its task stays FAILED.
    pub dismissed_at: Option<Timestamp>,
}
