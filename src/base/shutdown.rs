//! Two tokens and a tracker: *soft* means finish what you do and take nothing new, *hard* means stop now; whoever is spawned is waited for.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

/// Handed to everything that runs in the background; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    soft: CancellationToken,
    hard: CancellationToken,
    tracker: TaskTracker,
    failed: Arc<OnceLock<&'static str>>,
}

impl Shutdown {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when nothing new is to be taken.
    #[must_use]
    pub fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Cancelled when everything is to stop now.
    #[must_use]
    pub fn hard(&self) -> &CancellationToken {
        &self.hard
    }

    /// Asks everything to finish.
    pub fn begin(&self) {
        self.soft.cancel();
    }

    /// Asks everything to stop now.
    pub fn force(&self) {
        // Hard first: nobody is to see a drain that it has time for.
        self.hard.cancel();
        self.soft.cancel();
    }

    /// Asks everything to stop now, because of this loop.
    pub fn fail(&self, name: &'static str) {
        let _ = self.failed.set(name);
        self.force();
    }

    /// The loop whose panics ended the process, if one did.
    #[must_use]
    pub fn failed(&self) -> Option<&'static str> {
        self.failed.get().copied()
    }

    /// Spawns a task with a name for logs; [`Shutdown::finished`] waits for it.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns: named, in a span, and awaited")]
    pub fn spawn<F>(&self, name: &'static str, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.tracker.track_future(future.instrument(tracing::error_span!("background", name))))
    }

    /// Returns when everything that was spawned has ended.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
