//! Gauges that come from the database, refreshed by one loop: `/metrics` never asks the database.
//!
//! What is active is counted every few seconds over its own indexes. What has ended is counted again when a hundred times the duration of the last count has
//! passed: at once on small tables, and never for more than a hundredth of the time on large ones. While the database cannot be read the gauges keep what they
//! said for half a minute and then say that nothing is known: a stale number looks like a calm one.

use super::{core::Core, pause};
use crate::{
    base::{clock::Monotonic, metrics},
    domain::{failure::FailureCode, task::Status},
    store::{self, dead_letter, delivery, outbox, task},
};
use futures::FutureExt as _;
use std::{collections::HashMap, sync::Arc, time::Duration};

const REFRESH: Duration = Duration::from_secs(5);
/// Counting what has ended may take this part of the time.
const SHARE: u32 = 100;
/// How long gauges that could not be read anew are still believed.
const TRUSTED: Duration = Duration::from_secs(30);

pub(super) struct Gauges {
    core: Arc<Core>,
}

impl Gauges {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) async fn run(self) {
        let clock = &self.core.clock;
        let mut count_ended_at = clock.monotonic();
        let mut read_at: Option<Monotonic> = None;
        loop {
            let start = clock.monotonic();
            let count_ended = start >= count_ended_at;
            match self.tick(count_ended).await {
                Ok(()) => {
                    let end = clock.monotonic();
                    read_at = Some(end);
                    if count_ended {
                        count_ended_at = end + end.since(start) * SHARE;
                    }
                }
                Err(error) => {
                    self.core.complaints.log("gauges", &error);
                    if read_at.take_if(|at| start.since(*at) >= TRUSTED).is_some() {
                        forget();
                        // Everything is read at once when the database is back.
                        count_ended_at = start;
                    }
                }
            }
            tokio::select! {
                () = clock.sleep(self.core.jittered(REFRESH, 0.2)) => {}
                () = self.core.shutdown.soft().cancelled() => return,
            }
        }
    }

    /// Reads and sets them once; what has ended only if that is asked for.
    ///
    /// # Errors
    /// When the database is away; the gauges keep what they said.
    pub(super) async fn tick(&self, count_ended: bool) -> store::Result<()> {
        let now = self.core.clock.now();
        let work = store::work(move |tx| {
            async move {
                let active = task::active(tx).await?;
                let unpublished = outbox::unpublished(tx, now).await?;
                let deliveries = delivery::pending(tx).await?;
                let paused = pause::look(tx).await?;
                Ok((active, unpublished, deliveries, paused))
            }
            .boxed()
        });
        let (active, (unpublished, oldest), deliveries, paused) = self.core.db.read("gauges", work).await?;
        self.core.pause.note(paused);
        self.core.pending.count(active.pending);
        metrics::TASKS.set(&[Status::Pending.as_str()], approximate(active.pending));
        metrics::TASKS.set(&[Status::InProgress.as_str()], approximate(active.in_progress));
        metrics::TASK_OLDEST_RUNNABLE.set(&[], active.earliest_due.map_or(0.0, |due| now.since(due).as_secs_f64()));
        metrics::OUTBOX_UNPUBLISHED.set(&[], approximate(unpublished));
        metrics::OUTBOX_OLDEST.set(&[], oldest.as_secs_f64());
        for sink in ["jetstream", "webhook"] {
            let pending = deliveries.iter().find(|(kind, _)| kind == sink).map_or(0, |(_, count)| *count);
            metrics::DELIVERIES_PENDING.set(&[sink], approximate(pending));
        }
        if count_ended {
            self.count_ended().await?;
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a double's 53 bits")]
        metrics::GAUGES_READ.set(&[], now.as_seconds() as f64);
        Ok(())
    }

    async fn count_ended(&self) -> store::Result<()> {
        let work = store::work(|tx| async move { Ok((task::finished(tx).await?, dead_letter::open_by_reason(tx).await?)) }.boxed());
        let (finished, letters) = self.core.db.read("gauges", work).await?;
        let (finished, letters): (HashMap<Status, u64>, HashMap<String, u64>) =
            (finished.into_iter().collect(), letters.into_iter().collect());
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            metrics::TASKS.set(&[status.as_str()], approximate(finished.get(&status).copied().unwrap_or(0)));
        }
        for code in FailureCode::ALL {
            metrics::DEAD_LETTERS.set(&[code.as_str()], approximate(letters.get(code.as_str()).copied().unwrap_or(0)));
        }
        Ok(())
    }
}

fn forget() {
    for gauge in [
        &metrics::TASKS,
        &metrics::TASK_OLDEST_RUNNABLE,
        &metrics::OUTBOX_UNPUBLISHED,
        &metrics::OUTBOX_OLDEST,
        &metrics::DELIVERIES_PENDING,
        &metrics::DEAD_LETTERS,
        &metrics::ENGINE_PAUSED,
    ] {
        gauge.forget_all();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts above 2^53 do not come up")]
fn approximate(count: u64) -> f64 {
    count as f64
}
