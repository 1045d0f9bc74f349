//! The inbox consumer: takes a permit first, then a message, then claims its task; with a free permit and no message for a second it looks into the table.
//!
//! A message is acknowledged after the claim, not after the work. Because the table is looked at, a transport that loses everything costs a second, no task.

use super::{
    claim::{self, Claimed, Taken, Wanted},
    core::Core,
    outage::Outage,
    pause,
    transport::Delivery,
    worker,
};
use crate::{base::clock::Monotonic, domain::ids::TaskId, store};
use futures::FutureExt as _;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OwnedSemaphorePermit;

/// No message for this long: look into the table.
const IDLE: Duration = Duration::from_secs(1);
/// However many messages come, tasks that have been due for this long are looked for this often: theirs may be lost.
const OVERDUE: Duration = Duration::from_secs(30);
const BATCH: usize = 64;

/// A task whose row is damaged is tried again after this long: somebody may have mended it.
const PASS_OVER: Duration = Duration::from_mins(1);

pub(super) struct Consumer {
    core: Arc<Core>,
    broken: Broken,
}

/// Tasks that could not be taken, and when.
#[derive(Default)]
struct Broken(Mutex<HashMap<TaskId, Monotonic>>);

impl Broken {
    fn note(&self, id: TaskId, now: Monotonic) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, now);
    }

    fn passed_over(&self, now: Monotonic) -> HashSet<TaskId> {
        let mut broken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        broken.retain(|_, noted| now.since(*noted) < PASS_OVER);
        broken.keys().copied().collect()
    }
}

impl Consumer {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, broken: Broken::default() }
    }

    pub(super) async fn run(self) {
        self.until_drained().await;
        self.core.transport.close().await;
    }

    async fn until_drained(&self) {
        let core = &self.core;
        let mut outage = Outage::default();
        let mut look_at = core.clock.monotonic() + IDLE;
        let mut looked_for_overdue = core.clock.monotonic();
        loop {
            if !pause::over(core).await {
                return;
            }
            let Some(first) = self.permit().await else { return };
            let now = core.clock.monotonic();
            let done = if now.since(looked_for_overdue) >= OVERDUE {
                let permits = self.permits(first);
                let most = permits.len();
                let found = self.claim_due(OVERDUE, permits).await;
                // A full batch says that there are more: the next one is looked for at once.
                if !matches!(found, Ok(count) if count == most) {
                    looked_for_overdue = now;
                }
                found.map(drop)
            } else {
                tokio::select! {
                    biased;
                    () = core.shutdown.soft().cancelled() => return,
                    // One message is waited for with one permit; more of both are taken only if they are there.
                    deliveries = core.transport.receive(1 + core.permits.available_permits().min(BATCH - 1)) => {
                        look_at = core.clock.monotonic() + IDLE;
                        self.take(deliveries, self.permits(first)).await.map(drop)
                    }
                    () = core.clock.sleep_until(look_at) => {
                        let found = self.claim_due(Duration::ZERO, self.permits(first)).await;
                        look_at = self.next_look(&found);
                        found.map(drop)
                    }
                }
            };
            match done {
                Ok(()) => outage.over(),
                Err(error) => {
                    let wait = outage.note(core, "consumer", &error);
                    tokio::select! {
                        () = core.clock.sleep(wait) => {}
                        () = core.shutdown.soft().cancelled() => return,
                    }
                }
            }
        }
    }

    /// After a look that found something there may be more: no second is waited.
    fn next_look(&self, found: &store::Result<usize>) -> Monotonic {
        let now = self.core.clock.monotonic();
        if matches!(found, Ok(count) if *count > 0) { now } else { now + self.core.jittered(IDLE, 0.2) }
    }

    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            biased;
            () = self.core.shutdown.soft().cancelled() => None,
            permit = Arc::clone(&self.core.permits).acquire_owned() => permit.ok(),
        }
    }

    /// `first` and those that are free right now, at most a batch.
    fn permits(&self, first: OwnedSemaphorePermit) -> Vec<OwnedSemaphorePermit> {
        let mut permits = vec![first];
        while permits.len() < BATCH
            && let Ok(permit) = Arc::clone(&self.core.permits).try_acquire_owned()
        {
            permits.push(permit);
        }
        permits
    }

    /// Claims the tasks that messages ask for. There is a permit for each message: only this loop takes permits.
    async fn take(&self, mut deliveries: Vec<Delivery>, mut permits: Vec<OwnedSemaphorePermit>) -> store::Result<usize> {
        // Everyone locks rows in one order, so that two who take the same tasks wait for each other instead of deadlocking.
        deliveries.sort_by_key(|delivery| (delivery.envelope.task_id, delivery.envelope.message_id));
        let wanted: Vec<Wanted> = deliveries
            .iter()
            .map(|delivery| Wanted { task_id: delivery.envelope.task_id, message_id: Some(delivery.envelope.message_id) })
            .collect();
        match claim::claim(&self.core, "claim_message", &wanted).await {
            Ok(taken) if taken.iter().any(|taken| matches!(taken, Taken::Paused)) => {
                for delivery in &deliveries {
                    delivery.put_back(pause::LOOK).await;
                }
                Ok(0)
            }
            Ok(taken) => {
                let started = self.start(taken, &mut permits);
                for delivery in &deliveries {
                    delivery.acknowledge().await;
                }
                Ok(started)
            }
            Err(error) => {
                for delivery in &deliveries {
                    delivery.put_back(Duration::from_secs(1)).await;
                }
                Err(error)
            }
        }
    }

    /// Claims what is due in the table, as far as there are permits. Tasks that could not be taken, because their rows are damaged, are passed over for a
    /// while: however many of them are due longest, they stand before nobody.
    async fn claim_due(&self, overdue: Duration, mut permits: Vec<OwnedSemaphorePermit>) -> store::Result<usize> {
        let before = self.core.clock.now() - overdue;
        let (mut after, mut started) = (None, 0);
        loop {
            let limit = permits.len();
            let due = claim::due(&self.core, before, after, limit).await?;
            after = due.last().copied();
            let broken = self.broken.passed_over(self.core.clock.monotonic());
            let mut wanted: Vec<Wanted> =
                due.iter().filter(|due| !broken.contains(&due.id)).map(|due| Wanted { task_id: due.id, message_id: None }).collect();
            wanted.sort_by_key(|wanted| wanted.task_id);
            let mut hindered = wanted.len() < due.len();
            if !wanted.is_empty() {
                let taken = claim::claim(&self.core, "claim_tasks", &wanted).await?;
                for (one, taken) in wanted.iter().zip(&taken) {
                    if matches!(taken, Taken::Broken) {
                        self.broken.note(one.task_id, self.core.clock.monotonic());
                        hindered = true;
                    }
                }
                started += self.start(taken, &mut permits);
            }
            // The next page only if damaged rows filled this one; those that others took are no reason to look further.
            if !hindered || due.len() < limit || permits.is_empty() {
                return Ok(started);
            }
        }
    }

    fn start(&self, taken: Vec<Taken>, permits: &mut Vec<OwnedSemaphorePermit>) -> usize {
        let claimed: Vec<Claimed> =
            taken.into_iter().filter_map(|taken| if let Taken::Claimed(claimed) = taken { Some(*claimed) } else { None }).collect();
        let count = claimed.len();
        debug_assert!(count <= permits.len(), "permit before task");
        let most = count.min(permits.len());
        for (claimed, permit) in claimed.into_iter().zip(permits.drain(..most)) {
            let core = Arc::clone(&self.core);
            // Held from here on: an attempt that waits for its turn on the runtime is renewed like one that runs.
            let held = core.leases.hold(claimed.task.id, claimed.token, claimed.expires);
            self.core.shutdown.spawn("attempt", async move { worker::run(&core, claimed, held, permit).await });
        }
        count
    }

    /// One look at the table, for those who call ticks themselves: claims and starts what is due; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub(super) async fn tick(&self) -> store::Result<usize> {
        match Arc::clone(&self.core.permits).try_acquire_owned() {
            Ok(first) => self.claim_due(Duration::ZERO, self.permits(first)).await,
            Err(_) => Ok(0),
        }
    }

    /// Takes the messages that are there, for those who call ticks themselves; answers how many tasks began.
    ///
    /// # Errors
    /// When the database is away.
    pub(super) async fn message_tick(&self) -> store::Result<usize> {
        let Ok(first) = Arc::clone(&self.core.permits).try_acquire_owned() else { return Ok(0) };
        let permits = self.permits(first);
        match self.core.transport.receive(permits.len()).now_or_never() {
            Some(deliveries) => self.take(deliveries, permits).await,
            None => Ok(0),
        }
    }
}
