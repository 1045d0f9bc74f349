//! The janitor: takes away what is older than its retention, on every replica, a few rows at a time and never in step with the others.
//!
//! A batch is as large as what the database deletes in a few milliseconds, and after each there is a pause, so that submissions and claims hardly wait for it.
//! What must not go is kept by the statements themselves (`store/retention.rs`). A crash in the middle leaves the rest to the next sweep, here or elsewhere;
//! doing it twice does no harm. Rows that cannot be deleted are told in the log and passed over.

use super::{core::Core, outage::Outage};
use crate::{
    base::{chain::chain, metrics},
    domain::time::Timestamp,
    store::{
        self,
        retention::{self, Aging, Batch, Deleted},
    },
};
use futures::FutureExt as _;
use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const PERIOD: Duration = Duration::from_mins(10);
/// A batch that took less is doubled, one that took more than twice as much is halved.
const QUICK: Duration = Duration::from_millis(10);
const FIRST_BATCH: usize = 100;
const LARGEST_BATCH: usize = 2000;
/// For so many times as long as a batch took nothing is deleted.
const REST: u32 = 4;

pub(super) struct Janitor {
    core: Arc<Core>,
    batch: AtomicUsize,
}

impl Janitor {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, batch: AtomicUsize::new(FIRST_BATCH) }
    }

    pub(super) async fn run(self) {
        let core = &self.core;
        let mut outage = Outage::default();
        // Not at the start, when there is enough to do.
        let mut wait = core.jittered(PERIOD / 10, 1.0);
        loop {
            tokio::select! {
                () = core.clock.sleep(wait) => {}
                () = core.shutdown.soft().cancelled() => return,
            }
            wait = match self.tick().await {
                Ok(_) => {
                    outage.over();
                    core.jittered(PERIOD, 0.5)
                }
                Err(error) => outage.note(core, "janitor", &error),
            };
        }
    }

    /// One sweep over everything; answers how many rows went.
    ///
    /// # Errors
    /// When the database is away.
    pub(super) async fn tick(&self) -> store::Result<u64> {
        let mut told = String::new();
        let mut all = 0;
        for what in Aging::ALL {
            let deleted = self.sweep(what).await?;
            note(what.as_str(), deleted, &mut told);
            all += deleted;
        }
        let calls = self.legacy_calls().await?;
        note("legacy_calls", calls, &mut told);
        all += calls;
        if all > 0 {
            tracing::info!(rows = all, what = told.trim_end_matches(", "), "what was older than its retention is deleted");
        }
        Ok(all)
    }

    /// Idempotency keys say themselves when they end; everything else ends when it is older than this.
    fn before(&self, what: Aging) -> Timestamp {
        let now = self.core.clock.now();
        let kept = &self.core.config;
        match what {
            Aging::Tasks | Aging::DeadLetters | Aging::Steps => now - kept.retention_tasks,
            Aging::Outbox | Aging::Inbox => now - kept.retention_messages,
            Aging::Events => now - kept.retention_events,
            Aging::IdempotencyKeys => now,
        }
    }

    async fn sweep(&self, what: Aging) -> store::Result<u64> {
        let core = &self.core;
        let now = core.clock.now();
        let before = self.before(what);
        let (mut from, mut pass_over, mut deleted) = (Timestamp::from_micros(i64::MIN), 0, 0);
        while !core.shutdown.soft().is_cancelled() {
            let limit = self.batch.load(Ordering::Relaxed);
            let started = core.clock.monotonic();
            let batch = Batch { from, before, limit, pass_over, now };
            let work = store::work(move |tx| async move { retention::delete(tx, what, batch).await }.boxed());
            let answer = core.db.transaction("retention", work).await;
            let took = core.clock.monotonic().since(started);
            match answer {
                Ok(Deleted { rows, next }) => {
                    self.resize(limit, took);
                    deleted += rows as u64;
                    if rows < limit {
                        break;
                    }
                    if next > from {
                        (from, pass_over) = (next, 0);
                    }
                }
                Err(error) if error.is_unavailable() => {
                    // It may have been too much at once.
                    self.batch.store((limit / 4).max(1), Ordering::Relaxed);
                    return Err(error);
                }
                Err(error) if limit == 1 => {
                    tracing::error!(what = what.as_str(), error = chain(&error), "a row that is too old cannot be deleted");
                    pass_over += 1;
                    self.batch.store(FIRST_BATCH, Ordering::Relaxed);
                }
                // One of them; found by taking them one by one.
                Err(_) => self.batch.store(1, Ordering::Relaxed),
            }
            tokio::select! {
                () = core.clock.sleep(took * REST) => {}
                () = core.shutdown.soft().cancelled() => {}
            }
        }
        Ok(deleted)
    }

    fn resize(&self, limit: usize, took: Duration) {
        let size = if took < QUICK {
            (limit * 2).min(LARGEST_BATCH)
        } else if took > 2 * QUICK {
            (limit / 2).max(1)
        } else {
            limit
        };
        self.batch.store(size, Ordering::Relaxed);
    }

    async fn legacy_calls(&self) -> store::Result<u64> {
        let first = self.core.clock.now() - self.core.config.retention_legacy_calls;
        // The first ten characters of RFC 3339 are the day, in UTC as the ledger counts.
        let day: Arc<str> = first.to_string().chars().take(10).collect::<String>().into();
        let work = store::work(move |tx| {
            let day = Arc::clone(&day);
            async move { retention::delete_legacy_calls(tx, &day).await }.boxed()
        });
        self.core.db.transaction("retention", work).await
    }
}

fn note(what: &'static str, deleted: u64, told: &mut String) {
    if deleted > 0 {
        metrics::RETENTION_DELETED.add(&[what], deleted);
        // Writing to a String does not fail.
        let _ = write!(told, "{deleted} {what}, ");
    }
}
