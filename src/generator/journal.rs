//! What is done already, and where that is written: the database under the task's lease, or memory when there is no task.
//!
//! A step is done exactly when its key is known here. A crash before [`Journal::done`] returns means that the step is done again, to the same end.

use super::Halt;
use crate::{
    base::clock::Clock,
    domain::{
        task::{Phase, Progress},
        time::Timestamp,
    },
    engine::{Run, executor::Step},
    store::{
        self, Db,
        step_cache::{self, Found},
    },
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// The journal of one attempt.
pub enum Journal<'a> {
    /// An attempt at a task.
    Task { db: &'a Db, run: &'a Run, clock: &'a Clock },
    /// Work without a task: what other tasks have done is used if there is a database, and nothing is written to it.
    Memory { db: Option<&'a Db>, steps: Mutex<HashMap<String, String>>, on_progress: &'a (dyn Fn(Phase, Progress) + Send + Sync) },
}

impl fmt::Debug for Journal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task { .. } => "Journal::Task",
            Self::Memory { .. } => "Journal::Memory",
        })
    }
}

impl<'a> Journal<'a> {
    #[must_use]
    pub fn memory(db: Option<&'a Db>, on_progress: &'a (dyn Fn(Phase, Progress) + Send + Sync)) -> Self {
        Self::Memory { db, steps: Mutex::default(), on_progress }
    }

    /// The outputs of those steps that are done, by key.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn known(&self, keys: Vec<String>) -> Result<HashMap<String, String>, Halt> {
        let (db, mut known) = match self {
            Self::Task { db, .. } => (Some(*db), HashMap::new()),
            Self::Memory { db, steps, .. } => {
                let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                (*db, keys.iter().filter_map(|key| Some((key.clone(), steps.get(key)?.clone()))).collect())
            }
        };
        if let Some(db) = db {
            let find = || {
                let wanted = keys.clone();
                db.read("find_steps", move |tx| {
                    let wanted = wanted.clone();
                    Box::pin(async move { step_cache::find(tx, &wanted).await })
                })
            };
            let found = self.ask("looking for finished steps", find).await?;
            if let Self::Task { clock, .. } = self {
                self.note_use(db, &found, clock.now()).await?;
            }
            known.extend(found.into_iter().map(|(key, found)| (key, found.output)));
        }
        Ok(known)
    }

    /// What this task itself finished under a step's name in the attempt before. Nothing in a first attempt, which is also the first after a replay: between a
    /// failure and its replay days may pass.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn own(&self, step: &'static str) -> Result<Option<String>, Halt> {
        let Self::Task { db, run, .. } = self else { return Ok(None) };
        if run.task().attempt_no <= 1 {
            return Ok(None);
        }
        let task = run.task().id;
        self.ask("looking for a finished step", || db.read("find_own_step", move |tx| Box::pin(step_cache::of_step(tx, task, step)))).await
    }

    /// What belongs to this piece of work alone and to no other.
    #[must_use]
    pub fn scope(&self) -> String {
        match self {
            Self::Task { run, .. } => run.task().id.to_string(),
            Self::Memory { .. } => String::new(),
        }
    }

    /// Notes finished steps together with the progress.
    ///
    /// # Errors
    /// [`Halt::Stopped`] when the lease is gone.
    pub async fn done(&self, phase: Phase, progress: Progress, finished: Vec<Step>) -> Result<(), Halt> {
        match self {
            Self::Task { run, .. } => run.checkpoint(phase, progress, finished).await?,
            Self::Memory { steps, on_progress, .. } => {
                steps.lock().unwrap_or_else(PoisonError::into_inner).extend(finished.into_iter().map(|step| (step.key, step.output)));
                on_progress(phase, progress);
            }
        }
        Ok(())
    }

    /// Tells how far the work is.
    ///
    /// # Errors
    /// [`Halt::Stopped`] when the lease is gone.
    pub async fn progress(&self, phase: Phase, progress: Progress) -> Result<(), Halt> {
        match self {
            Self::Task { run, .. } => run.progress(phase, progress).await?,
            Self::Memory { on_progress, .. } => on_progress(phase, progress),
        }
        Ok(())
    }

    /// Writes down which of the steps are used after a long time.
    async fn note_use(&self, db: &Db, found: &HashMap<String, Found>, now: Timestamp) -> Result<(), Halt> {
        let stale: Vec<String> = found.iter().filter(|(_, found)| found.is_stale(now)).map(|(key, _)| key.clone()).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let touch = || {
            let stale = stale.clone();
            db.transaction("touch_steps", move |tx| {
                let stale = stale.clone();
                Box::pin(async move { step_cache::touch(tx, &stale, now).await })
            })
        };
        self.ask("noting the use of steps", touch).await
    }

    /// Asks the database: for a task as long as its lease lasts, so that a short absence costs no attempt; without one, once.
    async fn ask<T, F>(&self, what: &'static str, ask: impl Fn() -> F) -> Result<T, Halt>
    where
        F: Future<Output = store::Result<T>>,
    {
        match self {
            Self::Task { run, .. } => Ok(run.patiently(what, ask).await??),
            Self::Memory { .. } => Ok(ask().await?),
        }
    }
}
