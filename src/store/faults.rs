//! The named fault hook: makes a transaction fail before it runs, fail after it has committed ("committed, but the caller sees an error"), or wait.
//! There from day one so that every crash point can be proved; nothing arms it outside tests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// What an armed transaction does instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; the caller sees an error.
    FailBefore,
    /// It commits; the caller sees an error.
    FailAfter,
    /// It waits first, on the store's clock.
    Delay(Duration),
}

/// Faults by transaction name, each for a number of times.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<HashMap<&'static str, (Fault, u32)>>>);

impl Faults {
    /// Arms the next `times` transactions of this name.
    pub fn arm(&self, name: &'static str, fault: Fault, times: u32) {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times == 0 {
            armed.remove(name);
        } else {
            armed.insert(name, (fault, times));
        }
    }

    pub fn disarm(&self, name: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Takes the fault of the transaction that is about to run.
    pub(super) fn take(&self, name: &'static str) -> Option<Fault> {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, times) = armed.get_mut(name)?;
        let fault = *fault;
        *times -= 1;
        if *times == 0 {
            armed.remove(name);
        }
        Some(fault)
    }
}
