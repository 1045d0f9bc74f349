//! What other processes are to be told: that there may be messages due, that tasks have changed. Collected after commits until the listener sends it; a hint
//! that is lost costs them the time to their next poll.

use crate::store::Hints;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;

/// The other processes; cheap to clone. With nobody to send it (SQLite) nothing comes of what they are told.
#[derive(Debug, Clone, Default)]
pub(super) struct Others(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    due: AtomicBool,
    changed: AtomicBool,
    asked: Notify,
}

impl Others {
    /// Messages may be due earlier than they think.
    pub(super) fn due(&self) {
        self.tell(Hints { due: true, changed: false });
    }

    /// A task that somebody there may wait for has changed.
    pub(super) fn changed(&self) {
        self.tell(Hints { due: false, changed: true });
    }

    pub(super) fn tell(&self, hints: Hints) {
        self.0.due.fetch_or(hints.due, Ordering::AcqRel);
        self.0.changed.fetch_or(hints.changed, Ordering::AcqRel);
        self.0.asked.notify_one();
    }

    /// Returns when there is something to be sent.
    pub(super) async fn asked(&self) {
        self.0.asked.notified().await;
    }

    /// What is to be sent; it counts as sent.
    pub(super) fn take(&self) -> Hints {
        Hints { due: self.0.due.swap(false, Ordering::AcqRel), changed: self.0.changed.swap(false, Ordering::AcqRel) }
    }
}
