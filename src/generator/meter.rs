//! How far the work is: steps done of steps known, counted.

use crate::domain::task::Progress;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts. What is known only grows.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU32,
    known: AtomicU32,
}

impl Meter {
    /// Starts again: an agenda was read, maybe another one than before.
    pub fn reset(&self) {
        self.done.store(0, Relaxed);
        self.known.store(0, Relaxed);
    }

    /// So many more steps are known.
    pub fn expect(&self, steps: usize) {
        self.known.fetch_add(u32::try_from(steps).unwrap_or(0), Relaxed);
    }

    pub fn add(&self, done: usize) -> Progress {
        self.done.fetch_add(u32::try_from(done).unwrap_or(0), Relaxed);
        self.progress()
    }

    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { done: self.done.load(Relaxed), known: self.known.load(Relaxed) }
    }
}
