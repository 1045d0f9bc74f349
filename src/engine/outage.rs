//! What a loop does when the database is away: it waits, longer each time and not in step with others. All loops and attempts of the process together say so
//! about once a second at most: what is wrong is said by the first of them.

use super::core::Core;
use crate::base::clock::{Clock, Monotonic};
use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Waits that grow.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// How long to wait after one more failure.
    pub(super) fn next(&mut self, core: &Core) -> Duration {
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(LONGEST_WAIT);
        self.failures = self.failures.saturating_add(1);
        core.jittered(wait, 0.5)
    }

    pub(super) fn over(&mut self) {
        self.failures = 0;
    }
}

/// The errors that a loop has met in a row.
#[derive(Debug, Default)]
pub(super) struct Outage {
    backoff: Backoff,
}

impl Outage {
    /// Notes an error of `what` and answers how long to wait.
    pub(super) fn note(&mut self, core: &Core, what: &'static str, error: &dyn Error) -> Duration {
        core.complaints.log(what, error);
        self.backoff.next(core)
    }

    /// It worked again.
    pub(super) fn over(&mut self) {
        self.backoff.over();
    }
}

/// What the process says about a database that fails it; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Complaints(Arc<(Clock, Mutex<Said>)>);

#[derive(Debug, Default)]
struct Said {
    last: Option<Monotonic>,
    unsaid: u64,
}

impl Complaints {
    pub(super) fn new(clock: Clock) -> Self {
        Self(Arc::new((clock, Mutex::default())))
    }

    pub(super) fn log(&self, what: &'static str, error: &dyn Error) {
        let (clock, said) = &*self.0;
        let now = clock.monotonic();
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.last.is_some_and(|last| now.since(last) < LOG_EVERY) {
            said.unsaid += 1;
            return;
        }
        said.last = Some(now);
        let unsaid = std::mem::take(&mut said.unsaid);
        tracing::warn!(what, %error, cause = error.source().map(tracing::field::display), unsaid, "the database failed us");
    }
}
