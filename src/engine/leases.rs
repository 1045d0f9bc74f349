//! The leases that this process holds. An entry lives as long as its attempt; it says until when the lease surely holds by this process's own clock, and is
//! the one place through which an attempt is stopped.

use crate::{
    base::clock::{Clock, Monotonic},
    domain::{
        ids::{LeaseToken, TaskId},
        task::{Phase, Progress},
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// Why an attempt is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The task is somebody else's, or may be.
    LeaseLost,
    /// Somebody cancelled the task.
    Cancelled,
    /// The attempt ran over its deadline.
    Deadline,
    /// What the attempt did can never be stored.
    Unstorable,
    /// The process drains and the grace is over: the attempt is given back.
    Drain,
    /// The process stops now.
    Hard,
}

/// One lease.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) task_id: TaskId,
    pub(super) token: LeaseToken,
    state: Mutex<State>,
    stop: CancellationToken,
    reason: OnceLock<StopReason>,
}

#[derive(Debug)]
struct State {
    expires: Monotonic,
    /// What the executor said last, whether or not it is written yet.
    reached: Option<(Phase, Progress)>,
    written: Option<(Phase, Monotonic)>,
}

impl Lease {
    pub(super) fn expires(&self) -> Monotonic {
        self.state().expires
    }

    pub(super) fn reached(&self) -> Option<(Phase, Progress)> {
        self.state().reached
    }

    /// Notes progress, and says whether it is to be written now: a change of phase at once, anything else at most once every `every`.
    pub(super) fn note_progress(&self, phase: Phase, progress: Progress, now: Monotonic, every: std::time::Duration) -> bool {
        let mut state = self.state();
        state.reached = Some((phase, progress));
        let due = state.written.is_none_or(|(written, at)| written != phase || now.since(at) >= every);
        if due {
            state.written = Some((phase, now));
        }
        due
    }

    /// Asks the attempt to stop; the first reason stands.
    pub(super) fn stop(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.stop.cancel();
    }

    /// Fires when the attempt is to stop.
    pub(super) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    pub(super) fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    /// Returns when the lease has run out by this process's clock, however often it was renewed in between.
    pub(super) async fn ran_out(&self, clock: &Clock) {
        loop {
            let expires = self.expires();
            if clock.monotonic() >= expires {
                return;
            }
            clock.sleep_until(expires).await;
        }
    }

    fn renewed(&self, until: Monotonic) {
        let mut state = self.state();
        state.expires = state.expires.max(until);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All leases of the process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Leases(Arc<Mutex<HashMap<LeaseToken, Arc<Lease>>>>);

impl Leases {
    /// Holds a lease that surely lasts until `expires`; dropping the guard lets go of it.
    pub(super) fn hold(&self, task_id: TaskId, token: LeaseToken, expires: Monotonic) -> Held {
        let lease = Arc::new(Lease {
            task_id,
            token,
            state: Mutex::new(State { expires, reached: None, written: None }),
            stop: CancellationToken::new(),
            reason: OnceLock::new(),
        });
        self.entries().insert(token, Arc::clone(&lease));
        Held { lease, leases: self.clone() }
    }

    pub(super) fn all(&self) -> Vec<(TaskId, LeaseToken)> {
        self.entries().values().map(|lease| (lease.task_id, lease.token)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Notes that those of `asked` which are in `renewed` last until `until`, and stops the attempts of the others: their task has another holder, or ended.
    pub(super) fn renewed(&self, asked: &[(TaskId, LeaseToken)], renewed: &[LeaseToken], until: Monotonic) {
        let renewed: std::collections::HashSet<_> = renewed.iter().collect();
        let entries = self.entries();
        for lease in asked.iter().filter_map(|(_, token)| entries.get(token)) {
            if renewed.contains(&lease.token) {
                lease.renewed(until);
            } else {
                lease.stop(StopReason::LeaseLost);
            }
        }
    }

    pub(super) fn stop_task(&self, id: TaskId, reason: StopReason) {
        self.entries().values().filter(|lease| lease.task_id == id).for_each(|lease| lease.stop(reason));
    }

    pub(super) fn stop_token(&self, token: LeaseToken, reason: StopReason) {
        if let Some(lease) = self.entries().get(&token) {
            lease.stop(reason);
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<LeaseToken, Arc<Lease>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease while it is held.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) lease: Arc<Lease>,
    leases: Leases,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Whatever the executor left running learns that its attempt is over.
        self.lease.stop.cancel();
        self.leases.entries().remove(&self.lease.token);
    }
}
