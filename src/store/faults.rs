//! The named fault hook: makes a transaction fail before it runs, fail after it has committed ("committed, but the caller sees an error"), wait,
//! or never answer, as if the process had been killed there.
//! There from day one so that every crash point can be proved; nothing arms it outside tests. It also knows how many transactions run, so that a simulation can
//! wait until none does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

/// What an armed transaction does instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; the caller sees an error.
    FailBefore,
    /// It commits; the caller sees an error.
    FailAfter,
    /// It waits first, on the store's clock.
    Delay(Duration),
    /// Nothing happens, and the caller never hears of it: its process was killed before.
    KilledBefore,
    /// It commits, and the caller never hears of it: its process was killed after.
    KilledAfter,
}

/// Faults by transaction name, each for a number of times; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    armed: Mutex<HashMap<&'static str, Armed>>,
    running: watch::Sender<usize>,
}

/// The fault of transactions of one name.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// How many are let through first.
    skip: u32,
    /// And how many are hit.
    times: u32,
}

impl Faults {
    /// Arms the next `times` transactions of this name.
    pub fn arm(&self, name: &'static str, fault: Fault, times: u32) {
        let mut armed = self.armed();
        if times == 0 {
            armed.remove(name);
        } else {
            armed.insert(name, Armed { fault, skip: 0, times });
        }
    }

    /// Arms one transaction of this name, after `skip` others.
    pub fn arm_later(&self, name: &'static str, skip: u32, fault: Fault) {
        self.armed().insert(name, Armed { fault, skip, times: 1 });
    }

    /// Whether a transaction of this name still is to be hit.
    #[must_use]
    pub fn is_armed(&self, name: &str) -> bool {
        self.armed().contains_key(name)
    }

    pub fn disarm(&self, name: &'static str) {
        self.armed().remove(name);
    }

    /// Disarms everything.
    pub fn clear(&self) {
        self.armed().clear();
    }

    /// How many transactions run at this moment; one that is delayed does not run yet.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.0.running.borrow()
    }

    /// Returns at a moment at which no transaction runs.
    pub async fn quiet(&self) {
        // The sender lives in self.
        let _ = self.0.running.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Counts a transaction as running until the guard is dropped.
    pub(super) fn run(&self) -> Running {
        self.0.running.send_modify(|running| *running += 1);
        Running(self.clone())
    }

    /// Takes the fault of the transaction that is about to run.
    pub(super) fn take(&self, name: &'static str) -> Option<Fault> {
        let mut armed = self.armed();
        let Armed { fault, skip, times } = armed.get_mut(name)?;
        if *skip > 0 {
            *skip -= 1;
            return None;
        }
        let fault = *fault;
        *times -= 1;
        if *times == 0 {
            armed.remove(name);
        }
        Some(fault)
    }

    fn armed(&self) -> MutexGuard<'_, HashMap<&'static str, Armed>> {
        self.0.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction that runs.
#[derive(Debug)]
pub(super) struct Running(Faults);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.send_modify(|running| *running -= 1);
    }
}
