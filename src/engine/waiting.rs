//! What a wait is for, how it can end, and what has been seen of the task meanwhile.

use crate::domain::task::{Phase, Status, Task};
use std::sync::Arc;

/// What ends a wait early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// A terminal status.
    Finish,
    /// A later revision with another status or phase than these, or a terminal status; see [`WaitFor::change_of`].
    ChangeSince { revision: u64, status: Status, phase: Option<Phase> },
}

impl WaitFor {
    /// A change of status or phase that the holder of `task` has not seen; progress alone is none.
    #[must_use]
    pub const fn change_of(task: &Task) -> Self {
        Self::ChangeSince { revision: task.revision, status: task.status, phase: task.phase }
    }

    pub(super) fn judge(self, seen: &Seen) -> Option<Waited> {
        let Some(task) = &seen.task else { return seen.missing.then_some(Waited::Unknown) };
        let reached = match self {
            _ if task.status.is_terminal() => true,
            Self::Finish => false,
            // A look that was on its way when this wait began may bring what the caller has seen before: an earlier revision is no change.
            Self::ChangeSince { revision, status, phase } => task.revision > revision && (task.status, task.phase) != (status, phase),
        };
        reached.then(|| Waited::Reached(Task::clone(task)))
    }
}

/// How a wait ended.
#[derive(Debug, Clone)]
pub enum Waited {
    /// What was waited for.
    Reached(Task),
    /// The deadline passed; the last look found this.
    Deadline(Task),
    /// The process drains and waiters are asked to leave.
    Draining(Task),
    /// No such task.
    Unknown,
}

/// What the looks at one task have found so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) task: Option<Arc<Task>>,
    pub(super) missing: bool,
    /// The number of the last look that answered.
    pub(super) look: u64,
}

impl Seen {
    /// Takes a newer task over; an answer that was on its way while a newer one was told is dropped.
    pub(super) fn take(&mut self, task: &Task) -> bool {
        let newer = self.task.as_ref().is_none_or(|known| known.revision < task.revision);
        if newer {
            self.task = Some(Arc::new(task.clone()));
            self.missing = false;
        }
        newer
    }
}
