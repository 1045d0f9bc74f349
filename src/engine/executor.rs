//! What the engine asks of an executor: run one attempt and answer with a decision. Only the engine counts, waits and writes statuses.

use super::{
    core::{Core, is_permanent},
    leases::{Lease, StopReason},
    outage::Outage,
};
use crate::{
    base::{chain::chain, clock::Clock},
    domain::{
        event::EventDocument,
        failure::Failure,
        ids::ProtocolId,
        task::{Phase, Progress, Task},
    },
    store::{self, Tx, checkpoint, task},
};
use futures::{FutureExt as _, future::BoxFuture};
use std::{fmt, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Runs attempts of one kind of task.
pub trait TaskExecutor: Send + Sync + 'static {
    /// Runs one attempt. When `run.cancelled()` fires, the lease is gone, the task was cancelled, or the process ends: stop at once, whatever is returned is ignored.
    /// A panic counts as `internal`.
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision>;
}

/// How an attempt ended, as its executor sees it.
#[derive(Debug)]
pub enum Decision {
    Done(Done),
    /// Try again if attempts are left.
    Retry(Failure),
    /// Trying again cannot help.
    Fail(Failure),
}

impl From<Failure> for Decision {
    /// The catalogue says whether a failure is retried.
    fn from(failure: Failure) -> Self {
        match failure.retryable {
            crate::domain::failure::Retryable::No => Self::Fail(failure),
            crate::domain::failure::Retryable::Once | crate::domain::failure::Retryable::Yes => Self::Retry(failure),
        }
    }
}

/// What commits together with the finish; may run more than once, as every transaction.
pub type Effect = Arc<dyn for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, store::Result<Effected>> + Send + Sync>;

/// Makes an [`Effect`] of a closure: its type alone does not say that the future borrows the transaction.
pub fn effect<F>(effect: F) -> Effect
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, store::Result<Effected>> + Send + Sync + 'static,
{
    Arc::new(effect)
}

/// What the effect made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effected {
    pub protocol_id: Option<ProtocolId>,
    /// The documents, as the completion event lists them.
    pub documents: Vec<EventDocument>,
}

/// The work is done; `effect` runs inside the terminal transaction.
#[derive(Clone, Default)]
pub struct Done {
    pub effect: Option<Effect>,
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Done").field("effect", &self.effect.is_some()).finish()
    }
}

/// A finished step, stored under its key so that no attempt and no other task repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The step's name within the task, such as `COLLECT/question/17`.
    pub name: String,
    /// Hash of its inputs and of the generator's version.
    pub key: String,
    /// What it produced: small JSON, or a reference to a blob.
    pub output: String,
}

/// The lease was lost, or the attempt is to stop: return at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attempt's lease is gone")]
pub struct Stop;

/// One attempt, as its executor holds it. Everything it writes goes under the lease token.
#[derive(Clone)]
pub struct Run {
    core: Arc<Core>,
    task: Arc<Task>,
    lease: Arc<Lease>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("task", &self.task.id).field("claim_no", &self.task.claim_no).finish_non_exhaustive()
    }
}

/// Progress is written at most this often; a change of phase and a checkpoint write it at once.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

impl Run {
    pub(super) fn new(core: Arc<Core>, task: Arc<Task>, lease: Arc<Lease>) -> Self {
        Self { core, task, lease }
    }

    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Fires when the attempt is to stop at once.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        self.lease.stopped()
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Tells how far the work is; written at most once a second, a change of phase at once, what is left over with the attempt's end.
    ///
    /// # Errors
    /// [`Stop`] when the lease is gone.
    pub async fn progress(&self, phase: Phase, progress: Progress) -> Result<(), Stop> {
        if self.cancelled().is_cancelled() {
            return Err(Stop);
        }
        let new_phase = self.is_new(phase);
        if !self.lease.note_progress(phase, progress, self.core.clock.monotonic(), PROGRESS_EVERY) {
            return Ok(());
        }
        let (id, token) = (self.task.id, self.lease.token);
        let work = store::work(move |tx| async move { task::progress(tx, id, token, phase, progress).await }.boxed());
        let written = tokio::select! {
            written = self.core.db.transaction("progress", work) => written,
            // On a connection that died without a word it would take the database's whole patience, and the work does not need it.
            () = self.core.clock.sleep(self.core.config.heartbeat) => {
                tracing::debug!(taskId = %id, "progress is not waited for");
                return Ok(());
            }
        };
        match written {
            Ok(true) => {
                self.announce(new_phase);
                Ok(())
            }
            Ok(false) => self.lost(),
            Err(error) => {
                // The next one, or the attempt's end, says it.
                tracing::debug!(taskId = %id, error = chain(&error), "progress not written");
                Ok(())
            }
        }
    }

    /// Stores finished steps together with the progress, in one transaction under the lease.
    ///
    /// # Errors
    /// [`Stop`] when the lease is gone, or what was finished can never be stored: the task has failed then. A database that is away is waited for.
    pub async fn checkpoint(&self, phase: Phase, progress: Progress, steps: Vec<Step>) -> Result<(), Stop> {
        let (id, token) = (self.task.id, self.lease.token);
        let steps: Arc<[Step]> = steps.into();
        let new_phase = self.is_new(phase);
        self.lease.note_progress(phase, progress, self.core.clock.monotonic(), Duration::ZERO);
        let store = || {
            let now = self.core.clock.now();
            let steps = Arc::clone(&steps);
            let work = store::work(move |tx| {
                let steps = Arc::clone(&steps);
                async move {
                    if !task::progress(tx, id, token, phase, progress).await? {
                        return Ok(false);
                    }
                    for step in steps.iter() {
                        checkpoint::store(tx, id, &step.name, &step.key, &step.output, now).await?;
                    }
                    Ok(true)
                }
                .boxed()
            });
            self.core.db.transaction("checkpoint", work)
        };
        match self.patiently("storing a checkpoint", store).await? {
            Ok(true) => {
                self.announce(new_phase);
                Ok(())
            }
            Ok(false) => self.lost(),
            Err(error) => {
                // It would fail for ever, in every attempt; without the checkpoint this one must not go on as if it were stored.
                tracing::error!(error = chain(&error), "a checkpoint cannot be stored");
                self.lease.stop(StopReason::Unstorable);
                Err(Stop)
            }
        }
    }

    /// Asks the database, again and again while it is away, until the lease has run out. Only for what may be asked, or done, more than once.
    ///
    /// # Errors
    /// [`Stop`] when the lease is gone or has run out; inside, what asking again does not mend.
    pub async fn patiently<T, F>(&self, what: &'static str, ask: impl Fn() -> F) -> Result<store::Result<T>, Stop>
    where
        F: Future<Output = store::Result<T>>,
    {
        let mut outage = Outage::default();
        loop {
            if self.cancelled().is_cancelled() || self.core.clock.monotonic() >= self.lease.expires() {
                return Err(Stop);
            }
            match ask().await {
                Err(error) if !is_permanent(&error) => {
                    let wait = outage.note(&self.core, what, &error);
                    tokio::select! {
                        () = self.core.clock.sleep(wait) => {}
                        () = self.cancelled().cancelled() => return Err(Stop),
                    }
                }
                answer => return Ok(answer),
            }
        }
    }

    fn is_new(&self, phase: Phase) -> bool {
        self.lease.reached().is_none_or(|(reached, _)| reached != phase)
    }

    fn announce(&self, new_phase: bool) {
        if new_phase { self.core.hub.phase_changed(self.task.id) } else { self.core.hub.changed(self.task.id) }
    }

    fn lost(&self) -> Result<(), Stop> {
        self.lease.stop(StopReason::LeaseLost);
        Err(Stop)
    }
}
