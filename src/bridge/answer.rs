//! What a v1 call comes to.

use super::owed;
use crate::{
    base::{chain::chain, jq, shutdown::Shutdown},
    domain::{
        ids::{AgendaId, TaskId},
        task::Task,
        time::Timestamp,
    },
    engine::Overload,
    store::{self, Db},
};
use std::time::Duration;

/// The outcome, as v1's route puts it into HTTP.
#[derive(Debug)]
pub enum Answer {
    /// The task completed, now or earlier.
    Completed { task: TaskId, body: Vec<u8>, handed_out: HandedOut },
    /// It failed for good or was cancelled.
    Failed(Box<Task>),
    /// The deadline passed, or there were too many waiters: the task goes on.
    StillRunning { task: Box<Task>, waited: Duration },
    /// This process is about to end and waits no longer; another one does the work.
    Draining(TaskId),
    /// The caller asked not to wait.
    Accepted { task: Box<Task>, joined: bool },
    /// Not accepted, or accepted and not to be read; repeating is safe either way.
    Refused(Refusal),
}

/// Why v1 is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Stage M3: to all.
    ForAll,
    /// To this caller, which is configured as one that does not call any more.
    Retired,
    /// To this caller, since then.
    CutOff(Timestamp),
    /// Stage M2: to callers whose name nothing proves.
    Unproved,
    /// To all, for a while.
    Brownout { until: Timestamp },
}

/// Why a call came to nothing.
#[derive(Debug)]
pub enum Refusal {
    /// Nothing new is accepted for now.
    Overloaded(Overload),
    /// The database did not answer in time.
    TooSlow(Option<TaskId>),
    Store(store::Error, Option<TaskId>),
    /// The protocol is there, and `legacy.response` gives no body for it.
    Unpresentable(jq::RunError, TaskId),
}

impl Answer {
    /// The outcome as counted.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed(_) => "failed",
            Self::StillRunning { .. } => "timeout",
            Self::Draining(_) => "draining",
            Self::Accepted { .. } => "async",
            Self::Refused(_) => "refused",
        }
    }
}

/// To be told when the answer has been handed out: until then it stays owed.
#[derive(Debug, Clone)]
pub struct HandedOut {
    pub(super) db: Db,
    pub(super) shutdown: Shutdown,
    pub(super) caller: String,
    pub(super) agenda_id: AgendaId,
    pub(super) finished_at: Timestamp,
}

impl HandedOut {
    /// The answer is out: this caller is owed it no longer. Runs in the background; if it fails the caller may get the same answer once more, which is harmless.
    pub fn confirm(self) {
        let shutdown = self.shutdown.clone();
        shutdown.spawn("owed_answer", async move {
            let (caller, agenda_id) = (self.caller.clone(), self.agenda_id.clone());
            if let Err(error) = owed::forget(&self.db, self.caller, self.agenda_id, self.finished_at).await {
                tracing::warn!(error = chain(&error), caller, agendaId = %agenda_id, "an answer stays owed though it was handed out");
            }
        });
    }
}
