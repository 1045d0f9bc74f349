//! What a loop does when the database is away: it waits, longer each time and not in step with others, and says so about once a second at most.

use super::core::Core;
use crate::base::clock::{Clock, Monotonic};
use std::{error::Error, time::Duration};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const LOG_EVERY: Duration = Duration::from_secs(1);

/// The errors that a loop has met in a row.
#[derive(Debug, Default)]
pub(super) struct Outage {
    errors: u32,
    logged: Option<Monotonic>,
}

impl Outage {
    /// Notes an error of `what` and answers how long to wait.
    pub(super) fn note(&mut self, core: &Core, what: &'static str, error: &dyn Error) -> Duration {
        self.log(&core.clock, what, error);
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.errors.saturating_sub(1).min(16))).min(LONGEST_WAIT);
        core.jittered(wait, 0.5)
    }

    /// Notes an error without an answer.
    pub(super) fn log(&mut self, clock: &Clock, what: &'static str, error: &dyn Error) {
        self.errors = self.errors.saturating_add(1);
        let now = clock.monotonic();
        if self.logged.is_none_or(|logged| now.since(logged) >= LOG_EVERY) {
            self.logged = Some(now);
            tracing::warn!(what, %error, cause = error.source().map(tracing::field::display), errors = self.errors, "the database failed us");
        }
    }

    /// It worked again.
    pub(super) fn over(&mut self) {
        self.errors = 0;
    }
}
