//! What the ledger's account looks like in metrics. Labels are the configured names and `other`, which stands for everyone else together.

use super::{
    Callers,
    report::Report,
    verdict::{Blocked, Moved},
};
use crate::{
    base::metrics,
    domain::time::Timestamp,
    store::legacy_call::{self, DayCount},
};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

const OTHER: &str = "other";

#[derive(Debug)]
pub(super) struct LedgerMetrics {
    callers: Callers,
    /// By label. A call shows at once, before it is stored, and what is read a moment later must not take it back.
    last_calls: Mutex<HashMap<String, Timestamp>>,
}

impl LedgerMetrics {
    pub(super) fn new(callers: Callers) -> Self {
        Self { callers, last_calls: Mutex::default() }
    }

    /// Brings every caller's series into being: counters at 0, the rest not known yet.
    pub(super) fn begin(&self) {
        for label in self.labels() {
            metrics::LEGACY_LAST_REQUEST.forget(&[label]);
            for outcome in metrics::LEGACY_OUTCOMES {
                metrics::LEGACY_REQUESTS.add(&[label, outcome], 0);
            }
        }
        self.forget();
    }

    /// A v1 call has come in.
    pub(super) fn called(&self, name: &str, at: Timestamp) {
        self.show_last_call(self.callers.label(name), at);
    }

    /// A v1 call has ended.
    pub(super) fn ended(&self, name: &str, outcome: &str) {
        metrics::LEGACY_REQUESTS.increment(&[self.callers.label(name), outcome]);
    }

    /// The account, and its counts of `today`.
    pub(super) fn show(&self, report: &Report, today: &str) {
        let verdict = &report.verdict;
        metrics::LEGACY_CALLERS_ACTIVE.set(&[], number(verdict.active));
        metrics::LEGACY_REMOVABLE.set(&[], flag(verdict.removable));
        let Blocked { by_calls, by_observation, by_callers } = verdict.blocked;
        for (by, blocked) in [("calls", by_calls), ("observation", by_observation), ("callers", by_callers)] {
            metrics::LEGACY_REMOVAL_BLOCKED.set(&[by], flag(blocked));
        }
        metrics::LEGACY_WATCHED_SINCE.set(&[], report.watched_since.map_or(f64::NAN, seconds));
        metrics::LEGACY_QUIET_PERIOD.set(&[], report.quiet_period.as_secs_f64());
        metrics::LEGACY_NEWEST_CALLER
            .set(&[], report.callers.iter().filter_map(|caller| caller.known.first_v1_at).max().map_or(0.0, seconds));
        for label in self.labels() {
            self.show_caller(label, report, today);
        }
    }

    fn show_caller(&self, label: &str, report: &Report, today: &str) {
        let named: Vec<_> = report.callers.iter().filter(|caller| self.callers.label(&caller.known.caller.name) == label).collect();
        self.show_last_call(label, named.iter().filter_map(|caller| caller.known.last_v1_at).max().unwrap_or_default());
        for state in Moved::ALL {
            let count = named.iter().filter(|caller| caller.moved == state).count();
            metrics::LEGACY_CALLER_STATE.set(&[label, state.as_str()], number(count));
        }
        let counts = |outcome: &str| {
            let of_today = |count: &&DayCount| count.day == today && count.outcome == outcome;
            let calls: i64 = named.iter().flat_map(|caller| &caller.counts).filter(of_today).map(|count| count.calls).sum();
            number(usize::try_from(calls).unwrap_or_default())
        };
        metrics::LEGACY_CALLS_TODAY.set(&[label], counts(legacy_call::RECEIVED));
        for outcome in metrics::LEGACY_OUTCOMES {
            metrics::LEGACY_ANSWERS_TODAY.set(&[label, outcome], counts(outcome));
        }
    }

    fn show_last_call(&self, label: &str, at: Timestamp) {
        let mut last_calls = self.last_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last_calls.entry(label.to_owned()).or_default();
        *last = at.max(*last);
        // Under the lock, so that the gauge never keeps an older time.
        metrics::LEGACY_LAST_REQUEST.set(&[label], seconds(*last));
    }

    /// Nothing is known any more of what the database says.
    pub(super) fn forget(&self) {
        for gauge in [
            &metrics::LEGACY_CALLERS_ACTIVE,
            &metrics::LEGACY_REMOVABLE,
            &metrics::LEGACY_REMOVAL_BLOCKED,
            &metrics::LEGACY_WATCHED_SINCE,
            &metrics::LEGACY_NEWEST_CALLER,
        ] {
            gauge.forget_all();
        }
        for label in self.labels() {
            metrics::LEGACY_CALLS_TODAY.forget(&[label]);
            for state in Moved::ALL {
                metrics::LEGACY_CALLER_STATE.forget(&[label, state.as_str()]);
            }
            for outcome in metrics::LEGACY_OUTCOMES {
                metrics::LEGACY_ANSWERS_TODAY.forget(&[label, outcome]);
            }
        }
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.callers.names().chain([OTHER])
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a double's 53 bits")]
fn seconds(at: Timestamp) -> f64 {
    at.as_seconds() as f64
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts above 2^53 do not come up")]
fn number(count: usize) -> f64 {
    count as f64
}

fn flag(set: bool) -> f64 {
    if set { 1.0 } else { 0.0 }
}
