//! What a loop does when the database is away: it waits, longer each time and not in step with others. All loops and attempts of the process together say so at
//! once, and then less and less often: what is wrong is said by the first of them, and an outage of a minute fills less than a screen.

use super::core::Core;
use crate::base::{
    chain::chain,
    clock::{Clock, Monotonic},
};
use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// When an outage is told for the second time; then after twice as long each time.
const SAY_AGAIN: Duration = Duration::from_secs(1);
const SAY_AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// So long without an error ends an outage: longer than any loop waits between two tries.
const OVER: Duration = Duration::from_secs(30);

/// So many lost leases in a row are told one by one: an outage that outlasts them costs all of them at once.
const LOSSES_TOLD: u32 = 20;

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
    last_error: Option<Monotonic>,
    next: Option<Monotonic>,
    pause: Duration,
    unsaid: u64,
    last_loss: Option<Monotonic>,
    losses: u32,
}

impl Complaints {
    pub(super) fn new(clock: Clock) -> Self {
        Self(Arc::new((clock, Mutex::default())))
    }

    pub(super) fn log(&self, what: &'static str, error: &dyn Error) {
        let (clock, said) = &*self.0;
        let now = clock.monotonic();
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = said.last_error.replace(now).is_some_and(|last| now.since(last) < OVER);
        if goes_on && said.next.is_some_and(|next| now < next) {
            said.unsaid += 1;
            return;
        }
        said.pause = if goes_on { (said.pause * 2).min(SAY_AT_LEAST_EVERY) } else { SAY_AGAIN };
        said.next = Some(now + said.pause);
        let unsaid = std::mem::take(&mut said.unsaid);
        tracing::warn!(what, error = chain(error), unsaid, "the database failed us");
    }

    /// Says that an attempt has lost its lease, on behalf of the attempt.
    pub(super) fn lost(&self) {
        let (clock, said) = &*self.0;
        let now = clock.monotonic();
        let losses = {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            let goes_on = said.last_loss.replace(now).is_some_and(|last| now.since(last) < OVER);
            said.losses = if goes_on { said.losses.saturating_add(1) } else { 1 };
            said.losses
        };
        if losses <= LOSSES_TOLD {
            tracing::warn!("the lease was lost; the attempt is stopped and what it would have written is dropped");
        } else if losses == LOSSES_TOLD + 1 {
            tracing::warn!("more leases are lost; they are not told one by one, protocol_bridge_leases_lost_total counts them");
        }
    }
}
