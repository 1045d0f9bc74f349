//! The v1 calls that are held open: capped in total and per caller, and shown as gauges that come down however a call ends.

use crate::base::{clock::Monotonic, metrics};
use std::{
    collections::{BTreeSet, HashMap},
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
    /// Since when each call is held, with a number that keeps those of the same moment apart.
    since: BTreeSet<(Monotonic, u64)>,
    by_caller: HashMap<String, usize>,
    next: u64,
}

/// A place taken; dropping it, as a client that hangs up does, gives it back.
#[derive(Debug)]
pub struct Place {
    waiters: Arc<Inner>,
    caller: String,
    since: (Monotonic, u64),
}

impl Waiters {
    #[must_use]
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "bounded by the open-files limit")]
        metrics::LEGACY_WAITERS_LIMIT.set(&[], most as f64);
        Self(Arc::new(Inner { most, most_per_caller, taken: Mutex::default() }))
    }

    /// Brings the gauge of the longest wait to what it is at `now`: it grows by itself, so whoever is about to show it asks for this.
    pub fn show_longest(&self, now: Monotonic) {
        let taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = taken.since.first().map_or(0.0, |(since, _)| now.since(*since).as_secs_f64());
        metrics::LEGACY_LONGEST_WAIT.set(&[], longest);
    }

    /// A place for one more call of `caller` that came in at `since`, if there is one.
    #[must_use]
    pub fn enter(&self, caller: &str, since: Monotonic) -> Option<Place> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = taken.by_caller.get(caller).copied().unwrap_or_default();
        if taken.since.len() >= self.0.most || of_caller >= self.0.most_per_caller {
            return None;
        }
        let since = (since, taken.next);
        taken.next += 1;
        taken.since.insert(since);
        taken.by_caller.insert(caller.to_owned(), of_caller + 1);
        show(&taken);
        Some(Place { waiters: Arc::clone(&self.0), caller: caller.to_owned(), since })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.waiters.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.since.remove(&self.since);
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
    metrics::LEGACY_WAITERS.set(&[], taken.since.len() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock;
    use metrics_exporter_prometheus::PrometheusBuilder;
    use std::time::Duration;

    #[test]
    fn places_are_capped_and_come_back() {
        let (waiters, now) = (Waiters::new(3, 2), Clock::system().monotonic());
        let first = waiters.enter("a", now).unwrap();
        let _second = waiters.enter("a", now).unwrap();
        assert!(waiters.enter("a", now).is_none(), "two per caller");
        let _third = waiters.enter("b", now).unwrap();
        assert!(waiters.enter("c", now).is_none(), "three in all");
        drop(first);
        assert!(waiters.enter("a", now).is_some());
    }

    #[test]
    fn the_longest_wait_is_the_oldest_call_that_is_still_held() {
        let recorder = PrometheusBuilder::new().build_recorder();
        ::metrics::with_local_recorder(&recorder, || {
            let shown = |waiters: &Waiters, now| {
                waiters.show_longest(now);
                let text = recorder.handle().render();
                let line = text.lines().find(|line| line.starts_with("protocol_bridge_legacy_longest_wait_seconds ")).unwrap().to_owned();
                line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
            };
            let (waiters, start) = (Waiters::new(9, 9), Clock::system().monotonic());
            let at = |seconds| start + Duration::from_secs(seconds);
            assert!(shown(&waiters, at(100)).abs() < f64::EPSILON, "nobody waits");
            // Entered in another order than they came in.
            let _later = waiters.enter("a", at(30)).unwrap();
            let earlier = waiters.enter("b", at(10)).unwrap();
            assert!((shown(&waiters, at(100)) - 90.0).abs() < f64::EPSILON);
            drop(earlier);
            assert!((shown(&waiters, at(100)) - 70.0).abs() < f64::EPSILON);
        });
    }
}
