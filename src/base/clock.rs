//! The only place that asks what time it is.
//!
//! `now` is the start's wall clock carried on the monotonic clock, so that a wall clock that is set while we run moves nothing. Deadlines of things that
//! happen in this process (leases, waits, time-outs) are on [`Monotonic`]. Tests hand in a clock that stands still until moved.

use crate::domain::time::Timestamp;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

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
    System { wall: Timestamp, start: tokio::time::Instant },
    Manual { wall: Timestamp, elapsed: watch::Sender<Duration> },
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the ambient clocks")]
    pub fn system() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(Arc::new(Inner::System { wall: Timestamp::default() + wall, start: tokio::time::Instant::now() }))
    }

    /// A clock that stands still at `start` until [`Clock::advance`].
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(Inner::Manual { wall: start, elapsed: watch::Sender::new(Duration::ZERO) }))
    }

    /// Moves a manual clock forward and wakes who sleeps on it.
    ///
    /// # Panics
    /// On the system clock, which nobody can move.
    pub fn advance(&self, by: Duration) {
        match &*self.0 {
            Inner::System { .. } => panic!("only a manual clock can be moved"),
            Inner::Manual { elapsed, .. } => elapsed.send_modify(|elapsed| *elapsed += by),
        }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Inner::System { wall, .. } | Inner::Manual { wall, .. } => *wall + self.monotonic().0,
        }
    }

    #[must_use]
    pub fn monotonic(&self) -> Monotonic {
        match &*self.0 {
            Inner::System { start, .. } => Monotonic(start.elapsed()),
            Inner::Manual { elapsed, .. } => Monotonic(*elapsed.borrow()),
        }
    }

    /// Returns at `deadline`, at once if it has passed.
    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
    pub async fn sleep_until(&self, deadline: Monotonic) {
        match &*self.0 {
            Inner::System { start, .. } => match start.checked_add(deadline.0) {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            },
            Inner::Manual { elapsed, .. } => {
                // The sender lives in self, so waiting cannot end before the deadline.
                let _ = elapsed.subscribe().wait_for(|elapsed| *elapsed >= deadline.0).await;
            }
        }
    }

    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.monotonic() + duration).await;
    }
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
}
