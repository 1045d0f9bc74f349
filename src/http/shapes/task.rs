//! A task as clients see it.

use crate::{
    domain::{
        failure::Failure,
        ids::{AgendaId, ProtocolId, TaskId, WorkerId},
        task::{Attempt, AttemptOutcome, Kind, Phase, Status, Task},
        time::Timestamp,
    },
    engine::facade::Checkpoint,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A task: the same shape wherever one is shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "taskId": "0198c0de-7a3e-7c11-9d2b-3f5a60718293", "kind": "protocol", "agendaId": "42", "clientReference": null, "status": "IN_PROGRESS", "joined": false,
    "phase": "MERGE", "progress": { "done": 37, "total": 120, "percent": 31 }, "attempt": 1, "maxAttempts": 5, "nextAttemptAt": null,
    "createdAt": "2026-11-30T12:00:00Z", "startedAt": "2026-11-30T12:00:01Z", "finishedAt": null, "lastError": null, "errorMessage": null, "failure": null,
    "protocolId": null,
    "links": { "status": "/task/0198c0de-7a3e-7c11-9d2b-3f5a60718293/status", "events": "/task/0198c0de-7a3e-7c11-9d2b-3f5a60718293/events",
        "cancel": "/task/0198c0de-7a3e-7c11-9d2b-3f5a60718293", "result": null }
}))]
pub struct TaskStatus {
    #[schema(value_type = Uuid)]
    pub task_id: TaskId,
    #[schema(value_type = String, example = "protocol")]
    pub kind: Kind,
    #[schema(value_type = Option<String>, required)]
    pub agenda_id: Option<AgendaId>,
    #[schema(required)]
    pub client_reference: Option<String>,
    /// PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED.
    #[schema(value_type = String, example = "IN_PROGRESS")]
    pub status: Status,
    /// This submission found the task there already.
    pub joined: bool,
    /// COLLECT, CHECK, MERGE or PUBLISH.
    #[schema(value_type = Option<String>, required)]
    pub phase: Option<Phase>,
    pub progress: ProgressShape,
    /// Attempts that count against `maxAttempts`.
    pub attempt: u32,
    pub max_attempts: u32,
    /// When a task that waits is due.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub next_attempt_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<Timestamp>,
    /// The last attempt's message.
    #[schema(required)]
    pub last_error: Option<String>,
    /// The message of a task that failed for good.
    #[schema(required)]
    pub error_message: Option<String>,
    /// Why a task failed for good: `{code, message, detail?, retryable, phase, errors?}`.
    #[schema(value_type = Option<FailureShape>, required)]
    pub failure: Option<Failure>,
    #[schema(value_type = Option<Uuid>, required)]
    pub protocol_id: Option<ProtocolId>,
    pub links: Links,
}

/// Steps done of steps known.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProgressShape {
    pub done: u32,
    pub total: u32,
    pub percent: u32,
}

/// Where to go from here; null where that makes no sense (any more, or yet).
#[derive(Debug, Serialize, ToSchema)]
pub struct Links {
    pub status: String,
    pub events: String,
    #[schema(required)]
    pub cancel: Option<String>,
    #[schema(required)]
    pub result: Option<String>,
}

/// Why a task or an attempt failed.
#[derive(Debug, ToSchema)]
pub struct FailureShape {
    /// A code of the failure catalogue; `/problems/{code}` says what it means.
    #[schema(example = "agenda-not-ready")]
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    /// `no`, `once` or `yes`.
    #[schema(example = "no")]
    pub retryable: String,
    #[schema(required)]
    pub phase: Option<String>,
    pub errors: Option<Vec<super::FaultShape>>,
}

impl TaskStatus {
    #[must_use]
    pub fn of(task: &Task) -> Self {
        let id = task.id;
        let failed = task.status == Status::Failed;
        let finished = task.status.is_terminal();
        Self {
            task_id: id,
            kind: task.kind,
            agenda_id: task.agenda_id.clone(),
            client_reference: task.client_reference.clone(),
            status: task.status,
            joined: false,
            phase: task.phase,
            progress: ProgressShape { done: task.progress.done, total: task.progress.known, percent: task.progress.percent() },
            attempt: task.attempt_no,
            max_attempts: task.max_attempts,
            next_attempt_at: (task.status == Status::Pending).then_some(task.next_attempt_at),
            created_at: task.created_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            last_error: task.last_error.clone(),
            error_message: task.failure.as_ref().filter(|_| failed).map(|failure| failure.message.clone()),
            failure: task.failure.clone().filter(|_| failed),
            protocol_id: task.protocol_id,
            links: Links {
                status: status_url(id),
                events: format!("/task/{id}/events"),
                cancel: (!finished).then(|| format!("/task/{id}")),
                result: (task.status == Status::Completed && task.protocol_id.is_some()).then(|| format!("/task/{id}/result")),
            },
        }
    }

    /// As the answer to a submission.
    #[must_use]
    pub fn submitted(task: &Task, joined: bool) -> Self {
        Self { joined, ..Self::of(task) }
    }
}

/// Where a task's status is.
#[must_use]
pub fn status_url(id: TaskId) -> String {
    format!("/task/{id}/status")
}

/// One claim of a task by a worker.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptShape {
    /// How often the task had been claimed with this one; never reset.
    pub claim: u32,
    pub attempt: u32,
    #[schema(value_type = Uuid)]
    pub worker_id: WorkerId,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub ended_at: Option<Timestamp>,
    /// completed, failed, retried, cancelled, released or worker-lost; null while it runs.
    #[schema(value_type = Option<String>, required)]
    pub outcome: Option<AttemptOutcome>,
    #[schema(value_type = Option<FailureShape>, required)]
    pub failure: Option<Failure>,
    #[schema(value_type = Option<String>, required)]
    pub phase: Option<Phase>,
}

impl From<Attempt> for AttemptShape {
    fn from(attempt: Attempt) -> Self {
        Self {
            claim: attempt.claim_no,
            attempt: attempt.attempt_no,
            worker_id: attempt.worker_id,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            outcome: attempt.outcome,
            failure: attempt.failure,
            phase: attempt.phase,
        }
    }
}

/// A task with its timeline.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskWithAttempts {
    #[serde(flatten)]
    pub task: TaskStatus,
    /// Who submitted it.
    pub caller: String,
    /// The caller's payload.
    #[schema(value_type = Object)]
    pub payload: serde_json::Value,
    /// Its claims, oldest first.
    pub attempts: Vec<AttemptShape>,
    /// The steps that are done, in that order; no later attempt repeats them.
    pub steps: Vec<StepShape>,
}

/// A finished step.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepShape {
    /// Such as `COLLECT/question/17/report`.
    pub name: String,
    #[schema(value_type = String, format = DateTime)]
    pub done_at: Timestamp,
}

impl TaskWithAttempts {
    #[must_use]
    pub fn of(task: &Task, attempts: Vec<Attempt>, steps: Vec<Checkpoint>) -> Self {
        Self {
            task: TaskStatus::of(task),
            caller: task.caller.clone(),
            payload: serde_json::from_str(&task.payload).unwrap_or_else(|_| task.payload.clone().into()),
            attempts: attempts.into_iter().map(AttemptShape::from).collect(),
            steps: steps.into_iter().map(|step| StepShape { name: step.step, done_at: step.done_at }).collect(),
        }
    }
}
