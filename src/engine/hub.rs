//! The completion hub: everything that waits for a task waits here.
//!
//! A finish in this process wakes its waiters at once; the poll, one query for all ids waited for, is the guarantee behind it. Waiting costs no thread and no
//! database connection. Dropping the future removes the waiter and nothing else. A crash loses the waiters with their connections, never a task.

use super::{
    others::Others,
    outage::Complaints,
    waiting::{Seen, WaitFor, Waited},
};
use crate::{
    base::{
        clock::{Clock, Monotonic},
        shutdown::Shutdown,
    },
    domain::{ids::TaskId, task::Task},
    store::{self, Db, IdList, Tx, task},
};
use futures::FutureExt as _;
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Asks for a look within this time share one query.
const COALESCE: Duration = Duration::from_millis(5);
/// A look at everything because of a hint is followed by a rest of so many times what it took, so that hints, however many, use a part of one connection.
const REST: u32 = 4;
/// How long the last look before a deadline may wait for the shared query before it asks by itself.
const LAST_LOOK: Duration = Duration::from_millis(150);

/// The hub; cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    clock: Clock,
    poll_interval: Duration,
    others: Others,
    complaints: Complaints,
    waiting: Mutex<Waiting>,
    asked: Notify,
    draining: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    slots: HashMap<TaskId, Slot>,
    /// Ids that somebody wants looked at before the next poll.
    early: HashSet<TaskId>,
    /// Another process says that something has changed.
    hinted: bool,
    /// Looks begun so far: a look that began after a waiter asked answers that waiter.
    looks: u64,
    waiters: usize,
}

#[derive(Debug)]
struct Slot {
    seen: watch::Sender<Seen>,
    waiters: usize,
    /// Those of them who want to see more than the end.
    watchers: usize,
}

impl Hub {
    pub(super) fn new(db: Db, clock: Clock, poll_interval: Duration, others: Others, complaints: Complaints) -> Self {
        Self(Arc::new(Inner {
            db,
            clock,
            poll_interval,
            others,
            complaints,
            waiting: Mutex::default(),
            asked: Notify::new(),
            draining: CancellationToken::new(),
        }))
    }

    /// Waits until `wait_for` holds or `deadline` has passed on the clock; looks once more before it gives up.
    ///
    /// # Errors
    /// When the last look could not be had and no earlier one had found the task.
    pub async fn wait(&self, id: TaskId, wait_for: WaitFor, deadline: Monotonic) -> store::Result<Waited> {
        // Subscribed before the first look: a finish in between is not missed.
        let mut waiter = self.subscribe(id, wait_for);
        self.ask(id);
        loop {
            if let Some(waited) = wait_for.judge(&waiter.seen.borrow_and_update()) {
                return Ok(waited);
            }
            tokio::select! {
                // The sender lives in the slot as long as this waiter does.
                _ = waiter.seen.changed() => {}
                () = self.0.draining.cancelled() => return Box::pin(self.last_look(&mut waiter, wait_for, Waited::Draining)).await,
                () = self.0.clock.sleep_until(deadline) => return Box::pin(self.last_look(&mut waiter, wait_for, Waited::Deadline)).await,
            }
        }
    }

    /// How many wait now.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.waiting().waiters
    }

    /// Answers everyone who waits with [`Waited::Draining`], now and from now on.
    pub fn drain(&self) {
        self.0.draining.cancel();
        self.0.asked.notify_one();
    }

    /// Everyone who waits for this task sees it as it is now, and other processes are asked to look. Called after the commit.
    pub(super) fn tell(&self, task: &Task) {
        self.0.others.changed();
        if let Some(slot) = self.waiting().slots.get(&task.id) {
            slot.seen.send_if_modified(|seen| seen.take(task));
        }
    }

    /// Another process says that tasks have changed: whatever is waited for here is looked at soon.
    pub(super) fn hinted(&self) {
        let mut waiting = self.waiting();
        if !waiting.slots.is_empty() {
            waiting.hinted = true;
            drop(waiting);
            self.0.asked.notify_one();
        }
    }

    /// The task is in another phase, which those who wait for a change here and in other processes are to see.
    pub(super) fn phase_changed(&self, id: TaskId) {
        self.changed(id);
        self.0.others.changed();
    }

    /// The task has changed, but has not ended: worth a look if somebody in this process waits for more than its end.
    pub(super) fn changed(&self, id: TaskId) {
        let watched = self.waiting().slots.get(&id).is_some_and(|slot| slot.watchers > 0);
        if watched {
            self.ask(id);
        }
    }

    /// Polls while somebody waits; ends when the process drains and nobody does any more.
    pub(super) async fn run(self, shutdown: Shutdown) {
        let Inner { clock, poll_interval, asked, complaints, .. } = &*self.0;
        let mut next = clock.monotonic() + *poll_interval;
        let mut rested = clock.monotonic();
        loop {
            let soft = shutdown.soft().is_cancelled();
            if soft && (self.0.draining.is_cancelled() || self.waiters() == 0) {
                // Whoever comes now is not looked after any more, and told so at once.
                self.0.draining.cancel();
                return;
            }
            let hinted = self.waiting().hinted;
            tokio::select! {
                // Others who ask within this time share the query.
                () = asked.notified() => clock.sleep(COALESCE).await,
                () = clock.sleep_until(if hinted { rested.min(next) } else { next }) => {}
                () = shutdown.soft().cancelled(), if !soft => continue,
                () = shutdown.hard().cancelled() => {
                    self.0.draining.cancel();
                    return;
                }
            }
            let begun = clock.monotonic();
            let everything = begun >= next || (begun >= rested && self.waiting().hinted);
            let looked = if everything { self.tick().await } else { self.early_tick().await };
            if let Err(error) = looked {
                complaints.log("completion hub", &error);
                clock.sleep(COALESCE * 20).await;
            }
            let now = clock.monotonic();
            if everything {
                next = now + *poll_interval;
                rested = now + now.since(begun) * REST;
            }
        }
    }

    /// One look at every task that is waited for.
    ///
    /// # Errors
    /// When the database is away; everyone goes on waiting.
    pub(super) async fn tick(&self) -> store::Result<()> {
        let wanted = {
            let mut waiting = self.waiting();
            waiting.early.clear();
            waiting.hinted = false;
            waiting.slots.keys().copied().collect()
        };
        self.look(wanted).await
    }

    /// One look at those tasks that somebody asked about since the last look.
    pub(super) async fn early_tick(&self) -> store::Result<()> {
        let wanted = {
            let mut waiting = self.waiting();
            let early = std::mem::take(&mut waiting.early);
            early.into_iter().filter(|id| waiting.slots.contains_key(id)).collect()
        };
        self.look(wanted).await
    }

    async fn look(&self, wanted: Vec<TaskId>) -> store::Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let (look, known) = {
            let mut waiting = self.waiting();
            waiting.looks += 1;
            let known: HashMap<TaskId, Option<u64>> = wanted
                .iter()
                .map(|id| {
                    let seen = waiting.slots.get(id).and_then(|slot| slot.seen.borrow().task.as_ref().map(|task| task.revision));
                    (*id, seen)
                })
                .collect();
            (waiting.looks, Arc::new(known))
        };
        let asked = Arc::clone(&known);
        let work = store::work(move |tx| {
            let known = Arc::clone(&asked);
            async move {
                // Revisions for all, whole rows only for those that changed: ten thousand waiters cost little more than one.
                let revisions = task::revisions(tx, known.keys().map(|id| id.0).collect()).await?;
                let changed: IdList =
                    revisions.iter().filter(|(id, revision)| known.get(id) != Some(&Some(*revision))).map(|(id, _)| id.0).collect();
                let tasks = if changed.is_empty() { Vec::new() } else { task::find_many(tx, changed).await? };
                Ok((revisions.into_iter().map(|(id, _)| id).collect::<HashSet<_>>(), tasks))
            }
            .boxed()
        });
        let (found, tasks) = self.0.db.read("status_query", work).await?;
        let mut tasks: HashMap<TaskId, Task> = tasks.into_iter().map(|task| (task.id, task)).collect();
        let waiting = self.waiting();
        for id in known.keys() {
            let Some(slot) = waiting.slots.get(id) else { continue };
            let task = tasks.remove(id);
            slot.seen.send_modify(|seen| {
                seen.look = look;
                seen.missing = !found.contains(id);
                if let Some(task) = &task {
                    seen.take(task);
                }
            });
        }
        Ok(())
    }

    /// Asks for a look that begins after this call; answers its number.
    fn ask(&self, id: TaskId) -> u64 {
        let look = {
            let mut waiting = self.waiting();
            waiting.early.insert(id);
            waiting.looks + 1
        };
        self.0.asked.notify_one();
        look
    }

    /// The one more look: shared with all whose wait ends now, or had alone if the shared one does not come.
    async fn last_look(&self, waiter: &mut Waiter, wait_for: WaitFor, otherwise: fn(Task) -> Waited) -> store::Result<Waited> {
        let look = self.ask(waiter.id);
        let shared = async { waiter.seen.wait_for(|seen| seen.look >= look || wait_for.judge(seen).is_some()).await.is_ok() };
        let patience = self.0.clock.sleep(LAST_LOOK);
        let answered = tokio::select! {
            answered = shared => answered,
            () = patience => false,
        };
        let seen = waiter.seen.borrow_and_update().clone();
        if let Some(waited) = wait_for.judge(&seen) {
            return Ok(waited);
        }
        if answered && let Some(task) = seen.task {
            return Ok(otherwise(Task::clone(&task)));
        }
        let id = waiter.id;
        let look = self.0.db.read("status_query", move |tx: &mut Tx<'_>| async move { task::find(tx, id).await }.boxed());
        let looked = match &seen.task {
            None => look.await,
            // A database that hangs must not keep an answer back that could be given from what was seen before.
            Some(task) => tokio::select! {
                looked = look => looked,
                () = self.0.clock.sleep(LAST_LOOK) => return Ok(otherwise(Task::clone(task))),
            },
        };
        match looked {
            Ok(Some(task)) => {
                let mut seen = Seen::default();
                seen.take(&task);
                Ok(wait_for.judge(&seen).unwrap_or_else(|| otherwise(task)))
            }
            Ok(None) => Ok(Waited::Unknown),
            // What was seen before is a better answer than none.
            Err(error) => seen.task.map(|task| otherwise(Task::clone(&task))).ok_or(error),
        }
    }

    fn subscribe(&self, id: TaskId, wait_for: WaitFor) -> Waiter {
        let watches = matches!(wait_for, WaitFor::ChangeSince { .. });
        let mut waiting = self.waiting();
        waiting.waiters += 1;
        let slot = waiting.slots.entry(id).or_insert_with(|| Slot { seen: watch::Sender::new(Seen::default()), waiters: 0, watchers: 0 });
        slot.waiters += 1;
        slot.watchers += usize::from(watches);
        Waiter { hub: self.clone(), id, watches, seen: slot.seen.subscribe() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiter; dropping it is all that a client which hangs up does.
#[derive(Debug)]
struct Waiter {
    hub: Hub,
    id: TaskId,
    watches: bool,
    seen: watch::Receiver<Seen>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.hub.waiting();
        waiting.waiters -= 1;
        if waiting.waiters == 0 {
            // The loop of a process that drains ends with its last waiter.
            self.hub.0.asked.notify_one();
        }
        if let Entry::Occupied(mut slot) = waiting.slots.entry(self.id) {
            slot.get_mut().waiters -= 1;
            slot.get_mut().watchers -= usize::from(self.watches);
            if slot.get().waiters == 0 {
                slot.remove();
            }
        }
    }
}
