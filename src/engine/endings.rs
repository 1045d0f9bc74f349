//! Ends of attempts, written together: whatever has ended while the last commit ran goes into the next one. Nothing waits for company: what comes alone is
//! written alone, at once.
//!
//! Each end is guarded by its own lease token, so one that is refused takes nothing from the others; a batch that cannot be stored is written again one by one,
//! so that only the one which cannot be stored fails. Ends that bring an effect of their executor have a transaction of their own and do not come here. On a
//! crash before the commit no attempt of the batch has ended, and the rescuer takes their tasks; whoever is told of an error looks the end up.

use super::{
    core::{Core, is_permanent},
    finish::{Closed, TerminalIds, close_tasks},
};
use crate::{
    domain::{
        ids::TaskId,
        task::{AttemptOutcome, Task},
    },
    store::{self, task},
};
use futures::FutureExt as _;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

const BATCH: usize = 256;

/// The end of one attempt, without an effect.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) ending: task::Ending,
    pub(super) outcome: AttemptOutcome,
    pub(super) ids: TerminalIds,
}

#[derive(Debug)]
struct Waiting {
    end: End,
    tell: oneshot::Sender<store::Result<Option<Task>>>,
}

/// Ends that wait for the commit that is under way.
#[derive(Debug, Default)]
pub(super) struct Endings(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Somebody writes, and looks again when done.
    writing: bool,
}

impl Endings {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the end together with others; `None`: the task is not held under the token any more.
///
/// # Errors
/// When the end could not be stored, or whether it was is not known.
pub(super) async fn write(core: &Arc<Core>, end: End) -> store::Result<Option<Task>> {
    let (tell, told) = oneshot::channel();
    let first = {
        let mut queue = core.endings.queue();
        queue.waiting.push(Waiting { end, tell });
        !std::mem::replace(&mut queue.writing, true)
    };
    if first {
        // On a task of its own: the attempt that came first may be dropped while others wait for the same commit.
        let core = Arc::clone(core);
        core.shutdown.clone().spawn("endings", async move { write_all(&core).await });
    }
    told.await.unwrap_or(Err(store::Error::Closed))
}

async fn write_all(core: &Core) {
    let writing = Writing(&core.endings);
    // Those that end at this very moment come along.
    tokio::task::yield_now().await;
    loop {
        let batch: Vec<Waiting> = {
            let mut queue = core.endings.queue();
            if queue.waiting.is_empty() {
                queue.writing = false;
                std::mem::forget(writing);
                return;
            }
            let most = queue.waiting.len().min(BATCH);
            queue.waiting.drain(..most).collect()
        };
        write_batch(core, batch).await;
    }
}

/// Should writing panic, those who wait are told so, and write again.
struct Writing<'a>(&'a Endings);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.writing = false;
        queue.waiting.clear();
    }
}

async fn write_batch(core: &Core, batch: Vec<Waiting>) {
    let (ends, tells): (Vec<End>, Vec<_>) = batch.into_iter().map(|waiting| (waiting.end, waiting.tell)).unzip();
    let ends: Arc<[End]> = ends.into();
    match write_together(core, &ends).await {
        Ok(mut ended) => {
            for (end, tell) in ends.iter().zip(tells) {
                // Nobody listens: the process stops at once.
                let _ = tell.send(Ok(ended.remove(&end.ending.id)));
            }
        }
        Err(error) if is_permanent(&error) && ends.len() > 1 => {
            // One that cannot be stored must not keep the others from ending.
            for (end, tell) in ends.iter().zip(tells) {
                let alone: Arc<[End]> = Arc::new([end.clone()]);
                let _ = tell.send(write_together(core, &alone).await.map(|mut ended| ended.remove(&end.ending.id)));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for tell in tells {
                let _ = tell.send(Err(store::Error::Together(Arc::clone(&error))));
            }
        }
    }
}

async fn write_together(core: &Core, ends: &Arc<[End]>) -> store::Result<HashMap<TaskId, Task>> {
    let ends = Arc::clone(ends);
    let work = store::work(move |tx| {
        let ends = Arc::clone(&ends);
        async move {
            let endings: Vec<task::Ending> = ends.iter().map(|end| end.ending.clone()).collect();
            let ended: HashMap<TaskId, Task> = task::end(tx, &endings).await?.into_iter().map(|task| (task.id, task)).collect();
            let closed: Vec<Closed<'_>> = ends
                .iter()
                .filter_map(|end| {
                    let task = ended.get(&end.ending.id)?;
                    Some(Closed { task, ids: end.ids, outcome: end.outcome, documents: &[], at: end.ending.at })
                })
                .collect();
            close_tasks(tx, &closed).await?;
            Ok(ended)
        }
        .boxed()
    });
    core.db.transaction("finish_task", work).await
}
