//! The only place that asks what time it is.
//!
//! `now` is a time of day carried on the machine's boot-time clock, which nobody sets and which goes on while the machine is suspended: the start's wall clock
//! at first, and on PostgreSQL the database's own from the moment it has been measured ([`Clock::follow`]). A wall clock that is set while we run moves
//! nothing. Deadlines of things that happen in this process (leases, waits, time-outs) are on [`Monotonic`], the same boot-time clock. Tests hand in a clock
//! that stands still until moved.

use super::carried::{Carried, Reading};
use crate::domain::time::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

pub use super::carried::Followed;

/// Elsewhere the monotonic clock goes on during a suspend, or there is nothing better.
#[cfg(target_os = "linux")]
const CARRIER: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CARRIER: ClockId = ClockId::Monotonic;

/// A machine that slept for less has not been suspended: the two clocks are read one after the other.
const SUSPENDED: Duration = Duration::from_millis(100);

/// A point on this process's monotonic clock: the time since the clock was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Monotonic(Duration);

impl Monotonic {
    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// The clock; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
enum Inner {
    Running(Running),
    Manual { wall: Timestamp, elapsed: watch::Sender<Duration> },
}

#[derive(Debug)]
struct Running {
    carried: Carried,
    /// The carrying clock when this one was made.
    start: Duration,
    /// The timers' clock at the same moment; it stands still while the machine is suspended.
    timers: tokio::time::Instant,
    /// How long the machine has been suspended since, as far as anyone has noticed.
    suspended: watch::Sender<Duration>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the ambient wall clock")]
    pub fn system() -> Self {
        Self::with_wall(Timestamp::default() + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// A running clock on a machine whose wall clock says `wall` now. It is not asked again, whatever becomes of it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the timers' clock")]
    pub fn with_wall(wall: Timestamp) -> Self {
        let running = Running {
            carried: Carried::new(wall),
            start: carrier(),
            timers: tokio::time::Instant::now(),
            suspended: watch::Sender::new(Duration::ZERO),
        };
        Self(Arc::new(Inner::Running(running)))
    }

    /// A clock that stands still at `start` until [`Clock::advance`].
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(Inner::Manual { wall: start, elapsed: watch::Sender::new(Duration::ZERO) }))
    }

    /// Moves a manual clock forward and wakes who sleeps on it.
    ///
    /// # Panics
    /// On a running clock, which nobody can move.
    pub fn advance(&self, by: Duration) {
        match &*self.0 {
            Inner::Running(_) => panic!("only a manual clock can be moved"),
            Inner::Manual { elapsed, .. } => elapsed.send_modify(|elapsed| *elapsed += by),
        }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = self.monotonic().0;
        match &*self.0 {
            Inner::Running(running) => running.carried.at(passed),
            Inner::Manual { wall, .. } => *wall + passed,
        }
    }

    #[must_use]
    pub fn monotonic(&self) -> Monotonic {
        match &*self.0 {
            Inner::Running(running) => Monotonic(carrier().saturating_sub(running.start)),
            Inner::Manual { elapsed, .. } => Monotonic(*elapsed.borrow()),
        }
    }

    /// Lets `now` follow another clock, which was asked and answered at these points of ours. A manual clock follows nobody.
    #[expect(clippy::must_use_candidate, reason = "what changed is worth a line in the log, no more")]
    pub fn follow(&self, asked: Monotonic, theirs: Timestamp, answered: Monotonic) -> Followed {
        match &*self.0 {
            Inner::Running(running) => running.carried.follow(Reading { asked: asked.0, theirs, answered: answered.0 }, self.monotonic().0),
            Inner::Manual { .. } => Followed::Agrees,
        }
    }

    /// Returns at `deadline`, at once if it has passed.
    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
    pub async fn sleep_until(&self, deadline: Monotonic) {
        match &*self.0 {
            Inner::Running(running) => {
                let mut suspended = running.suspended.subscribe();
                loop {
                    let left = deadline.since(self.monotonic());
                    if left.is_zero() {
                        return;
                    }
                    // The senders live in self, so an answer means that the machine was suspended, and the timer with it.
                    tokio::select! {
                        () = tokio::time::sleep(left) => {}
                        _ = suspended.changed() => {}
                    }
                }
            }
            Inner::Manual { elapsed, .. } => {
                let _ = elapsed.subscribe().wait_for(|elapsed| *elapsed >= deadline.0).await;
            }
        }
    }

    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.monotonic() + duration).await;
    }

    /// Wakes everyone who sleeps if the machine has been suspended since the last call, and answers for how long: timers stood still meanwhile, deadlines
    /// did not. Called once a second.
    #[expect(clippy::must_use_candidate, reason = "what was noticed is worth a line in the log, no more")]
    pub fn notice_suspend(&self) -> Option<Duration> {
        let Inner::Running(running) = &*self.0 else { return None };
        let total = self.monotonic().0.saturating_sub(running.timers.elapsed());
        let mut newly = Duration::ZERO;
        running.suspended.send_if_modified(|known| {
            newly = total.saturating_sub(*known);
            let noticed = newly >= SUSPENDED;
            if noticed {
                *known = total;
            }
            noticed
        });
        (newly >= SUSPENDED).then_some(newly)
    }
}

/// The clock that carries everything.
fn carrier() -> Duration {
    let time = clock_gettime(CARRIER);
    // Neither is ever negative: it counts from when the machine was started.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn a_manual_clock_stands_still_until_moved() {
        let clock = Clock::manual(Timestamp::from_micros(1_000_000));
        let sleep = clock.sleep(Duration::from_secs(2));
        futures::pin_mut!(sleep);
        assert_eq!(clock.now(), Timestamp::from_micros(1_000_000));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        sleep.await;
        assert_eq!(clock.now(), Timestamp::from_micros(3_000_000));
    }

    #[tokio::test]
    async fn a_running_clock_goes_on_from_the_wall_clock_of_its_start_and_follows_another() {
        let noon: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let clock = Clock::with_wall(noon);
        let started = clock.monotonic();
        clock.sleep(Duration::from_millis(20)).await;
        let passed = clock.monotonic().since(started);
        assert!(passed >= Duration::from_millis(20));
        assert!(clock.now() >= noon + passed && clock.now() < noon + Duration::from_mins(1));
        let asked = clock.monotonic();
        let hour_ago = noon - Duration::from_hours(1);
        assert!(matches!(clock.follow(asked, hour_ago, asked), Followed::Back(_)));
        assert!(clock.now() >= hour_ago && clock.now() < hour_ago + Duration::from_mins(1));
        assert_eq!(clock.notice_suspend(), None, "nobody suspends the machine during this test");
    }
}
