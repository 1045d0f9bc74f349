//! Gauges that come from the database, refreshed by one loop: `/metrics` never asks the database. Active rows are counted every few seconds over their own
//! indexes, finished ones once a minute.

use super::{core::Core, pause};
use crate::{
    base::{clock::Monotonic, metrics},
    domain::{failure::FailureCode, task::Status},
    store::{self, dead_letter, outbox, task},
};
use futures::FutureExt as _;
use std::{collections::HashMap, sync::Arc, time::Duration};

const REFRESH: Duration = Duration::from_secs(5);
const COUNT_FINISHED: Duration = Duration::from_mins(1);

pub(super) struct Gauges {
    core: Arc<Core>,
}

impl Gauges {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) async fn run(self) {
        let mut finished_at: Option<Monotonic> = None;
        loop {
            let now = self.core.clock.monotonic();
            let count_finished = finished_at.is_none_or(|at| now.since(at) >= COUNT_FINISHED);
            match self.tick(count_finished).await {
                Ok(()) if count_finished => finished_at = Some(now),
                Ok(()) => {}
                Err(error) => self.core.complaints.log("gauges", &error),
            }
            tokio::select! {
                () = self.core.clock.sleep(self.core.jittered(REFRESH, 0.2)) => {}
                () = self.core.shutdown.soft().cancelled() => return,
            }
        }
    }

    /// Reads and sets them once.
    ///
    /// # Errors
    /// When the database is away; the gauges keep what they said.
    pub(super) async fn tick(&self, count_finished: bool) -> store::Result<()> {
        let now = self.core.clock.now();
        let work = store::work(move |tx| {
            async move {
                let active = task::active(tx).await?;
                let unpublished = outbox::unpublished(tx, now).await?;
                let letters = dead_letter::open_by_reason(tx).await?;
                let finished = if count_finished { Some(task::finished(tx).await?) } else { None };
                let paused = pause::look(tx).await?;
                Ok((active, unpublished, letters, finished, paused))
            }
            .boxed()
        });
        let (active, (unpublished, oldest), letters, finished, paused) = self.core.db.read("gauges", work).await?;
        self.core.pause.note(paused);
        self.core.pending.count(active.pending);
        metrics::TASKS.set(&[Status::Pending.as_str()], approximate(active.pending));
        metrics::TASKS.set(&[Status::InProgress.as_str()], approximate(active.in_progress));
        metrics::TASK_OLDEST_RUNNABLE.set(&[], active.earliest_due.map_or(0.0, |due| now.since(due).as_secs_f64()));
        metrics::OUTBOX_UNPUBLISHED.set(&[], approximate(unpublished));
        metrics::OUTBOX_OLDEST.set(&[], oldest.as_secs_f64());
        let letters: HashMap<String, u64> = letters.into_iter().collect();
        for code in FailureCode::ALL {
            metrics::DEAD_LETTERS.set(&[code.as_str()], approximate(letters.get(code.as_str()).copied().unwrap_or(0)));
        }
        if let Some(finished) = finished {
            let finished: HashMap<Status, u64> = finished.into_iter().collect();
            for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
                metrics::TASKS.set(&[status.as_str()], approximate(finished.get(&status).copied().unwrap_or(0)));
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts above 2^53 do not come up")]
fn approximate(count: u64) -> f64 {
    count as f64
}
