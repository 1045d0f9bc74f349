//! The store's own tasks: what runs here ends by itself, whether or not whoever asked still waits, and `close` waits for it.

use super::{Error, Result};
use std::future::Future;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

#[derive(Debug, Clone, Default)]
pub(super) struct Tasks(TaskTracker);

impl Tasks {
    /// Runs `work` on a task of its own and answers what it answered.
    pub(super) async fn run<T, W>(&self, name: &'static str, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        if self.0.is_closed() {
            return Err(Error::Closed);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "tracked here, awaited by close: a dropped caller must not stop a transaction half done"
        )]
        let task = tokio::spawn(self.0.track_future(work.in_current_span()));
        task.await.unwrap_or_else(|error| Err(if error.is_panic() { Error::Panicked(name) } else { Error::Closed }))
    }

    /// Takes nothing new and returns when all that runs has ended.
    pub(super) async fn close(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
