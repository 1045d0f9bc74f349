//! One transaction on its way through the SQLite writer, its types erased.

use super::{Error, Result, Tx, measure::Measure};
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::SqliteConnection;
use std::{fmt, panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::oneshot;

/// What a run came to, and so what to do with what it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    /// Undo it: the work failed.
    Undo,
    /// Undo it and run it again: another process was in the way.
    Again,
}

/// A unit of work for the writer. It runs inside its own savepoint and may run more than once; its caller is told only after the commit.
pub(super) trait Job: Send {
    fn run<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Verdict>;

    /// Of the last run; none before the first.
    fn verdict(&self) -> Option<Verdict>;

    /// How often it has been repeated.
    fn repeats(&self) -> u32;

    /// Forgets the last run and counts one more repeat.
    fn repeat(&mut self) -> u32;

    /// Tells the caller what the last run answered, or that its group failed.
    fn settle(self: Box<Self>, failed: Option<Arc<sqlx::Error>>);
}

impl fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}

pub(super) struct Work<T, F> {
    name: &'static str,
    closure: F,
    answer: Option<Result<T>>,
    tell: oneshot::Sender<Result<T>>,
    repeats: u32,
    measure: Measure,
}

impl<T, F> Work<T, F> {
    pub(super) fn new(name: &'static str, closure: F, tell: oneshot::Sender<Result<T>>, measure: Measure) -> Self {
        Self { name, closure, answer: None, tell, repeats: 0, measure }
    }
}

impl<T, F> Job for Work<T, F>
where
    T: Send + 'static,
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
{
    fn run<'a>(&'a mut self, connection: &'a mut SqliteConnection) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let mut tx = Tx::Sqlite(connection);
            let caught = AssertUnwindSafe(async { (self.closure)(&mut tx).await }).catch_unwind().await;
            let answer = caught.unwrap_or(Err(Error::Panicked(self.name)));
            let verdict = verdict(&answer);
            self.answer = Some(answer);
            verdict
        })
    }

    fn verdict(&self) -> Option<Verdict> {
        self.answer.as_ref().map(verdict)
    }

    fn repeats(&self) -> u32 {
        self.repeats
    }

    fn repeat(&mut self) -> u32 {
        self.answer = None;
        self.repeats += 1;
        self.repeats
    }

    fn settle(self: Box<Self>, failed: Option<Arc<sqlx::Error>>) {
        self.measure.record();
        let answer = match (self.answer, failed) {
            // Its own failure says more than that of its group.
            (Some(Err(error)), _) => Err(error),
            (_, Some(error)) => Err(Error::Group(error)),
            (Some(answer), None) => answer,
            (None, None) => Err(Error::Closed),
        };
        // A caller that is gone does not need to be told.
        let _ = self.tell.send(answer);
    }
}

fn verdict<T>(answer: &Result<T>) -> Verdict {
    match answer {
        Ok(_) => Verdict::Keep,
        Err(error) if error.is_conflict() => Verdict::Again,
        Err(_) => Verdict::Undo,
    }
}
