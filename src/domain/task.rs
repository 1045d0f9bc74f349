//! A task and the one function that changes its status.
//!
//! [`transition`] is the whole state machine. Loops, handlers and SQL only carry out what it says; a status that it refuses is never written.

use super::{
    failure::Failure,
    ids::{AgendaId, ProtocolId, TaskId, WorkerId},
    time::Timestamp,
    trace::TraceContext,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Accepted; waits for its time or for a worker.
    Pending,
    /// Held by a worker under a lease.
    InProgress,
    Completed,
    /// Failed for good; has an open dead letter.
    Failed,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 5] = [Self::Pending, Self::InProgress, Self::Completed, Self::Failed, Self::Cancelled];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEvent {
    /// A worker takes it under a new lease.
    Claim,
    /// The executor is done.
    Complete,
    /// It goes back to wait for another attempt: a failed attempt with attempts left, or a lost lease.
    Retry,
    /// The attempt is given back uncounted: a drain, or a claim whose executor never started.
    Release,
    /// It failed for good: not retryable, attempts used up, or its workers were lost too often.
    Fail,
    Cancel,
    /// An operator puts a FAILED task back into the queue; its attempts start anew.
    Replay,
}

/// Why an event does not apply; losing a race is an ordinary answer, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} does not apply to a task that is {}", status.as_str())]
pub struct Refused {
    pub status: Status,
    pub event: TaskEvent,
}

/// The state machine: the status that `event` leads to from `status`.
///
/// # Errors
/// [`Refused`] when the event does not apply; nothing may be written then.
#[expect(clippy::match_same_arms, reason = "one line for each row of the state machine's table")]
pub const fn transition(status: Status, event: TaskEvent) -> Result<Status, Refused> {
    match (status, event) {
        (Status::Pending, TaskEvent::Claim) => Ok(Status::InProgress),
        (Status::InProgress, TaskEvent::Complete) => Ok(Status::Completed),
        (Status::InProgress, TaskEvent::Retry | TaskEvent::Release) => Ok(Status::Pending),
        (Status::InProgress, TaskEvent::Fail) => Ok(Status::Failed),
        (Status::Pending | Status::InProgress, TaskEvent::Cancel) => Ok(Status::Cancelled),
        (Status::Failed, TaskEvent::Replay) => Ok(Status::Pending),
        (status, event) => Err(Refused { status, event }),
    }
}

/// Which executor runs a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Generates an agenda's protocol.
    Protocol,
    /// Free payload; honours `failUntilAttempt` and `sleepMs`.
    Demo,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Protocol, Self::Demo];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Demo => "demo",
        }
    }
}

/// One of the generator's four parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Phase {
    Collect,
    Check,
    Merge,
    Publish,
}

impl Phase {
    pub const ALL: [Self; 4] = [Self::Collect, Self::Check, Self::Merge, Self::Publish];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Collect => "COLLECT",
            Self::Check => "CHECK",
            Self::Merge => "MERGE",
            Self::Publish => "PUBLISH",
        }
    }
}

/// How an attempt ended, as its row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptOutcome {
    Completed,
    Failed,
    Retried,
    Cancelled,
    Released,
    WorkerLost,
}

impl AttemptOutcome {
    pub const ALL: [Self; 6] = [Self::Completed, Self::Failed, Self::Retried, Self::Cancelled, Self::Released, Self::WorkerLost];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Cancelled => "cancelled",
            Self::Released => "released",
            Self::WorkerLost => "worker-lost",
        }
    }
}

/// A stored word that none of the closed set's values has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a known {1}")]
pub struct UnknownWord(pub String, pub &'static str);

macro_rules! closed_set {
    ($type:ident, $noun:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.into_iter().find(|value| value.as_str() == text).ok_or_else(|| UnknownWord(text.to_owned(), $noun))
            }
        }
    };
}
closed_set!(Status, "status");
closed_set!(Kind, "kind");
closed_set!(Phase, "phase");
closed_set!(AttemptOutcome, "attempt outcome");

/// Steps done of steps known: counted, never guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub done: u32,
    pub known: u32,
}

impl Progress {
    /// Percent to the nearest whole one, but 100 only when all is done; 0 while nothing is known.
    #[must_use]
    pub fn percent(self) -> u32 {
        let (done, known) = (u64::from(self.done), u64::from(self.known));
        match known {
            0 => 0,
            _ if done >= known => 100,
            _ => u32::try_from((done * 200 + known) / (known * 2)).unwrap_or(99).min(99),
        }
    }
}

/// A task as stored, without its lease: the token is known to its holder only.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub kind: Kind,
    pub agenda_id: Option<AgendaId>,
    /// The caller's payload, a JSON text.
    pub payload: String,
    pub client_reference: Option<String>,
    pub status: Status,
    /// How often it was claimed; never reset.
    pub claim_no: u32,
    /// Attempts that count against `max_attempts`; given back by a drain, reset by a replay.
    pub attempt_no: u32,
    pub max_attempts: u32,
    pub run_at: Timestamp,
    /// When a PENDING task is due.
    pub next_attempt_at: Timestamp,
    pub lease_until: Option<Timestamp>,
    pub worker_id: Option<WorkerId>,
    pub phase: Option<Phase>,
    pub progress: Progress,
    /// The last attempt's message.
    pub last_error: Option<String>,
    /// The last attempt's failure; on a FAILED task, why it failed for good.
    pub failure: Option<Failure>,
    pub protocol_id: Option<ProtocolId>,
    /// Who submitted it.
    pub caller: String,
    /// Under which span of which trace it was submitted.
    pub trace: Option<TraceContext>,
    /// Grows with every change that a client can see.
    pub revision: u64,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// One claim of a task, as the timeline shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub claim_no: u32,
    pub attempt_no: u32,
    pub worker_id: WorkerId,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub outcome: Option<AttemptOutcome>,
    pub failure: Option<Failure>,
    pub phase: Option<Phase>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replay_leaves_a_terminal_status() {
        use TaskEvent::{Cancel, Claim, Complete, Fail, Release, Replay, Retry};
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            for event in [Claim, Complete, Retry, Release, Fail, Cancel] {
                assert_eq!(transition(status, event), Err(Refused { status, event }));
            }
        }
        assert_eq!(transition(Status::Failed, Replay), Ok(Status::Pending));
        assert!(transition(Status::Completed, Replay).is_err());
        assert!(transition(Status::Cancelled, Replay).is_err());
    }

    #[test]
    fn only_a_holder_finishes() {
        for event in [TaskEvent::Complete, TaskEvent::Fail, TaskEvent::Retry, TaskEvent::Release] {
            assert!(transition(Status::InProgress, event).is_ok());
            assert!(transition(Status::Pending, event).is_err());
        }
        assert!(transition(Status::InProgress, TaskEvent::Claim).is_err());
    }

    #[test]
    fn percent_is_counted() {
        assert_eq!(Progress { done: 0, known: 0 }.percent(), 0);
        assert_eq!(Progress { done: 37, known: 120 }.percent(), 31);
        assert_eq!(Progress { done: 399, known: 400 }.percent(), 99);
        assert_eq!(Progress { done: 119, known: 120 }.percent(), 99);
        assert_eq!(Progress { done: 120, known: 120 }.percent(), 100);
    }
}
