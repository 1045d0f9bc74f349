//! What every part of the engine shares: configuration, database, clock, executors, and the places where the parts meet.

use super::{
    Hub, TaskExecutor,
    endings::Endings,
    events::{Feed, Telling},
    leases::Leases,
    others::Others,
    outage::Complaints,
    pause::Pause,
    relay::Handover,
    transport::Transport,
};
use crate::{
    base::{clock::Clock, config, disk::FreeSpace, entropy::Entropy, shutdown::Shutdown},
    domain::{
        audit::{Action, Author, Entry},
        failure::Failure,
        ids::{TaskId, WorkerId},
        retry::RetryPolicy,
        task::{Kind, Phase, Task},
        time::Timestamp,
        trace::TraceContext,
    },
    store::{self, Db},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, Semaphore};

const LOOK_DRAINED_EVERY: Duration = Duration::from_millis(50);

/// What the engine is made from.
pub struct Parts {
    pub config: config::Engine,
    /// How often the completion hub looks when nothing wakes it (`legacy.poll_interval`).
    pub poll_interval: Duration,
    /// How long running attempts may go on once the process drains (`shutdown.grace`).
    pub grace: Duration,
    pub db: Db,
    /// PostgreSQL: how the lease keeper opens its own connection on its own thread, so that no load on the pool or on the runtime delays a renewal.
    /// `None`, and on SQLite: renewals go to the head of the writer's queue.
    pub lease_store: Option<store::db::Options>,
    pub transport: Arc<dyn Transport>,
    pub clock: Clock,
    pub entropy: Entropy,
    pub executors: HashMap<Kind, Arc<dyn TaskExecutor>>,
    /// How events are told to others.
    pub telling: Telling,
    /// Below its floor nothing new is accepted, so that what runs has room to finish; `None`: nobody looks.
    pub disk: Option<FreeSpace>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("config", &self.config).field("transport", &self.transport.name()).finish_non_exhaustive()
    }
}

/// How many tasks wait, roughly: the last count plus what was accepted here since. Other replicas accept, too, and attempts return to the queue, so the table is
/// counted some way before this reaches the limit.
#[derive(Debug, Default)]
pub(super) struct Pending {
    counted: AtomicU64,
    since: AtomicU64,
}

impl Pending {
    pub(super) fn count(&self, pending: u64) {
        self.counted.store(pending, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) {
        self.since.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a look at the table is worth its cost: well below the limit by this estimate, nobody counts.
    pub(super) fn may_exceed(&self, limit: u64) -> bool {
        let estimate = self.counted.load(Ordering::Relaxed).saturating_add(self.since.load(Ordering::Relaxed));
        estimate.saturating_add((limit / 10).max(CHEAP_TO_COUNT)) >= limit
    }
}

/// So many rows are counted for every submission without anybody noticing.
const CHEAP_TO_COUNT: u64 = 1000;

pub(super) struct Core {
    pub(super) config: config::Engine,
    pub(super) grace: Duration,
    pub(super) db: Db,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) executors: HashMap<Kind, Arc<dyn TaskExecutor>>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) handover: Handover,
    pub(super) others: Others,
    pub(super) complaints: Complaints,
    pub(super) leases: Leases,
    pub(super) endings: Endings,
    pub(super) hub: Hub,
    pub(super) feed: Feed,
    /// There may be something to deliver earlier than the courier thinks.
    pub(super) deliver: Arc<Notify>,
    pub(super) telling: Telling,
    pub(super) permits: Arc<Semaphore>,
    pub(super) pending: Pending,
    pub(super) pause: Pause,
    pub(super) disk: Option<FreeSpace>,
    pub(super) shutdown: Shutdown,
    pub(super) worker_id: WorkerId,
}

impl Core {
    /// The kinds that this process runs, as the claim takes them: one of them twice if it is one only; `None`: this process runs nothing.
    pub(super) fn kinds(&self) -> Option<[Kind; 2]> {
        let mut kinds = Kind::ALL.into_iter().filter(|kind| self.executors.contains_key(kind));
        let first = kinds.next()?;
        Some([first, kinds.next().unwrap_or(first)])
    }

    pub(super) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy { base: self.config.retry_base, jitter: self.config.retry_jitter }
    }

    /// Adds up to `share` of it to a duration, so that replicas and loops do not fall into step.
    pub(super) fn jittered(&self, duration: Duration, share: f64) -> Duration {
        duration + duration.mul_f64((share * self.entropy.fraction()).clamp(0.0, 1.0))
    }

    /// The entry of the audit log that commits with a change made by hand.
    pub(super) fn audit_entry(
        &self,
        author: &Author,
        action: Action,
        object: &dyn fmt::Display,
        detail: Option<String>,
        now: Timestamp,
    ) -> Arc<Entry> {
        Arc::new(Entry { id: self.entropy.id(now), at: now, author: author.clone(), action, object: object.to_string(), detail })
    }

    /// Returns when the process drains and nothing is left to be done in it: no attempt runs, and nobody waits.
    pub(super) async fn drained(&self) {
        self.shutdown.soft().cancelled().await;
        while !self.leases.is_empty() || self.hub.waiters() > 0 {
            self.clock.sleep(LOOK_DRAINED_EVERY).await;
        }
    }

    /// Tells everyone who waits for the task; after the commit.
    pub(super) fn tell(&self, task: &Task) {
        self.hub.tell(task);
    }

    /// Stops the task's attempt if it runs in this process.
    pub(super) fn stop_task(&self, id: TaskId, reason: super::leases::StopReason) {
        self.leases.stop_task(id, reason);
    }
}

/// Whether an error says that the work itself cannot be stored, however often it is tried: a value that does not fit, a broken rule, a defect.
pub(super) fn is_permanent(error: &store::Error) -> bool {
    !error.is_unavailable()
}

/// One line per task outcome.
pub(super) fn log_outcome(task: &Task, failure: Option<&Failure>) {
    let agenda = task.agenda_id.as_ref().map(tracing::field::display);
    let trace_id = task.trace.as_ref().map(TraceContext::trace_id);
    let milliseconds = task.finished_at.map(|at| u64::try_from(at.since(task.created_at).as_millis()).unwrap_or(u64::MAX));
    tracing::info!(
        taskId = %task.id, kind = %task.kind, agendaId = agenda, caller = task.caller, claim = task.claim_no, attempt = task.attempt_no,
        traceId = trace_id, ms = milliseconds, protocolId = task.protocol_id.map(tracing::field::display),
        failure = failure.map(|failure| failure.code.as_str()), phase = failure.and_then(|failure| failure.phase).map(Phase::as_str),
        reason = failure.map(|failure| failure.message.as_str()), "task {}", task.status
    );
}
