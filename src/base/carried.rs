//! A time of day carried on a monotonic clock: what was once measured, plus what has passed since. It follows another clock without going back.
//!
//! A measurement says no more than that the other clock showed its time somewhere between the question and the answer. As long as ours lies in that span it is
//! right as far as anyone can tell, and stays. Otherwise it moves to the middle of the span: forward at once; back by standing still until the time has come
//! round again, so that what happens later never looks earlier. More than [`LONGEST_HOLD`] is not stood through: somebody has set the other clock, everyone who
//! follows it finds the same, and a service that starts nothing for an hour would be worse than a time that is seen twice.

use crate::domain::time::Timestamp;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// A clock that is further behind than this is followed at once.
const LONGEST_HOLD: Duration = Duration::from_mins(1);
const NEVER: i64 = i64::MIN;

/// One look at another clock, in time passed on ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) asked: Duration,
    pub(super) theirs: Timestamp,
    pub(super) answered: Duration,
}

/// What a reading changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// Nothing: the two cannot be told apart.
    Agrees,
    /// It went forward by this much.
    Forward(Duration),
    /// It stands still for this long.
    Held(Duration),
    /// It went back: by more than can be stood through, or it had followed nobody before.
    Back(Duration),
}

/// The carried time.
#[derive(Debug)]
pub(super) struct Carried {
    /// The time, in microseconds, at which nothing had passed.
    base: AtomicI64,
    /// No earlier time is told.
    floor: AtomicI64,
    /// Whether it has followed a reading already; the first is taken as it is, since nothing has been stamped with our own guess yet.
    followed: Mutex<bool>,
}

impl Carried {
    pub(super) fn new(at_start: Timestamp) -> Self {
        Self { base: AtomicI64::new(at_start.as_micros()), floor: AtomicI64::new(NEVER), followed: Mutex::new(false) }
    }

    pub(super) fn at(&self, passed: Duration) -> Timestamp {
        // In this order: whoever sees a base that was set back sees the floor that was put in before.
        let base = Timestamp::from_micros(self.base.load(Ordering::Acquire));
        (base + passed).max(Timestamp::from_micros(self.floor.load(Ordering::Acquire)))
    }

    pub(super) fn follow(&self, reading: Reading, passed: Duration) -> Followed {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !std::mem::replace(&mut *followed, true);
        let base = self.base.load(Ordering::Acquire);
        let (earliest, latest) = ((reading.theirs - reading.answered).as_micros(), (reading.theirs - reading.asked).as_micros());
        if (earliest..=latest).contains(&base) {
            return Followed::Agrees;
        }
        let measured = earliest.midpoint(latest);
        let by = Duration::from_micros(measured.abs_diff(base));
        let floor = if measured > base || first || by > LONGEST_HOLD { NEVER } else { self.at(passed).as_micros() };
        self.floor.store(floor, Ordering::Release);
        self.base.store(measured, Ordering::Release);
        match (measured > base, floor == NEVER) {
            (true, _) => Followed::Forward(by),
            (false, true) => Followed::Back(by),
            (false, false) => Followed::Held(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn noon() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    /// Asked one millisecond before `passed`, answered one after it.
    fn reading(theirs: Timestamp, passed: Duration) -> Reading {
        Reading { asked: passed - MILLISECOND, theirs, answered: passed + MILLISECOND }
    }

    #[test]
    fn the_first_reading_is_taken_as_it_is() {
        for (theirs, followed) in [
            (noon() + 3600 * SECOND, Followed::Forward(3590 * SECOND)),
            (noon() - 3600 * SECOND, Followed::Back(3610 * SECOND)),
            (noon() - 3 * SECOND, Followed::Back(13 * SECOND)),
        ] {
            let carried = Carried::new(noon());
            assert_eq!(carried.follow(reading(theirs, 10 * SECOND), 10 * SECOND), followed);
            assert_eq!(carried.at(10 * SECOND), theirs);
            assert_eq!(carried.at(15 * SECOND), theirs + 5 * SECOND);
        }
    }

    #[test]
    fn what_cannot_be_told_apart_changes_nothing() {
        let carried = Carried::new(noon());
        assert_eq!(carried.follow(reading(noon() + SECOND + MILLISECOND / 2, SECOND), SECOND), Followed::Agrees);
        assert_eq!(carried.at(SECOND), noon() + SECOND);
    }

    #[test]
    fn it_goes_forward_at_once_and_back_by_standing_still() {
        let carried = Carried::new(noon());
        carried.follow(reading(noon(), SECOND), SECOND);
        assert_eq!(carried.follow(reading(noon() + 3 * SECOND, 2 * SECOND), 2 * SECOND), Followed::Forward(2 * SECOND));
        assert_eq!(carried.at(2 * SECOND), noon() + 3 * SECOND);
        assert_eq!(carried.follow(reading(noon() + 2 * SECOND, 3 * SECOND), 3 * SECOND), Followed::Held(2 * SECOND));
        for (passed, at) in [(3, 4), (4, 4), (5, 4), (6, 5), (7, 6)] {
            assert_eq!(carried.at(passed * SECOND), noon() + at * SECOND, "{passed} s");
        }
        assert_eq!(carried.follow(reading(noon() + 7 * SECOND, 8 * SECOND), 8 * SECOND), Followed::Agrees);
    }

    #[test]
    fn a_clock_that_was_set_back_by_an_hour_is_not_stood_through() {
        let carried = Carried::new(noon());
        carried.follow(reading(noon() + SECOND, SECOND), SECOND);
        assert_eq!(carried.follow(reading(noon() - 3600 * SECOND, 2 * SECOND), 2 * SECOND), Followed::Back(3602 * SECOND));
        assert_eq!(carried.at(3 * SECOND), noon() - 3599 * SECOND);
    }
}
