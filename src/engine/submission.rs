//! What is asked for when work is submitted, and what came of it.

use crate::{
    domain::{
        ids::AgendaId,
        task::{Kind, Task},
        time::Timestamp,
        trace::TraceContext,
    },
    store,
};
use std::fmt;

/// A request for work, checked at the door: texts hold no NUL, the payload is valid JSON of bounded size and depth.
#[derive(Debug, Clone)]
pub struct Submission {
    pub kind: Kind,
    /// Needed for `protocol` tasks.
    pub agenda_id: Option<AgendaId>,
    /// A JSON text.
    pub payload: String,
    pub client_reference: Option<String>,
    /// `None`, or a time that has passed: at once.
    pub run_at: Option<Timestamp>,
    pub callback_url: Option<String>,
    pub idempotency: Option<Idempotency>,
    /// The caller's name, as logged and shown.
    pub caller: String,
    pub via: Via,
    /// Under which span of which trace it is submitted.
    pub trace: Option<TraceContext>,
}

/// A caller's key for this submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's proved name, or `anonymous`.
    pub scope: String,
    pub key: String,
    /// Hash of what was asked for: the same key with another fingerprint is refused.
    pub fingerprint: String,
}

/// Which door it came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    V1,
    V2,
}

impl Via {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// An accepted submission.
#[derive(Debug, Clone)]
pub struct Submitted {
    pub task: Task,
    /// The task was there already: the agenda's active one, or the one of the idempotency key.
    pub joined: bool,
}

/// Why nothing new is accepted for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// `engine.max_pending` tasks wait already.
    Queue,
    /// The disk is full, or so nearly that what runs needs the rest.
    Disk,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "Too many tasks wait already; nothing was accepted.",
            Self::Disk => "The disk is full; nothing was accepted.",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error("{0}")]
    Overloaded(Overload),
    #[error(transparent)]
    Store(#[from] store::Error),
}
