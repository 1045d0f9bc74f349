//! How many v1 calls are held open: capped in total and per caller, and shown as a gauge that comes down however a call ends.

use crate::base::metrics;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The places to wait in; cheap to clone.
#[derive(Debug, Clone)]
pub struct Waiters(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_per_caller: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_caller: HashMap<String, usize>,
}

/// A place taken; dropping it, as a client that hangs up does, gives it back.
#[derive(Debug)]
pub struct Place {
    waiters: Arc<Inner>,
    caller: String,
}

impl Waiters {
    #[must_use]
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        Self(Arc::new(Inner { most, most_per_caller, taken: Mutex::default() }))
    }

    /// A place for one more call of `caller`, if there is one.
    #[must_use]
    pub fn enter(&self, caller: &str) -> Option<Place> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = taken.by_caller.get(caller).copied().unwrap_or_default();
        if taken.all >= self.0.most || of_caller >= self.0.most_per_caller {
            return None;
        }
        taken.all += 1;
        taken.by_caller.insert(caller.to_owned(), of_caller + 1);
        show(&taken);
        Some(Place { waiters: Arc::clone(&self.0), caller: caller.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.waiters.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(of_caller) = taken.by_caller.get_mut(&self.caller) {
            *of_caller -= 1;
            if *of_caller == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
        show(&taken);
    }
}

/// Under the lock, so that the gauge never keeps an older value than the count.
fn show(taken: &Taken) {
    #[expect(clippy::cast_precision_loss, reason = "bounded by the open-files limit")]
    metrics::LEGACY_WAITERS.set(&[], taken.all as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_capped_and_come_back() {
        let waiters = Waiters::new(3, 2);
        let first = waiters.enter("a").unwrap();
        let _second = waiters.enter("a").unwrap();
        assert!(waiters.enter("a").is_none(), "two per caller");
        let _third = waiters.enter("b").unwrap();
        assert!(waiters.enter("c").is_none(), "three in all");
        drop(first);
        assert!(waiters.enter("a").is_some());
    }
}
