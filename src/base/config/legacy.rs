//! `[legacy]`: the v1 call.

use super::{Problem, duration};
use crate::base::jq;
use crate::domain::{stage::Stage, time::Timestamp};
use serde::Deserialize;
use std::time::Duration;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Legacy {
    pub stage: Stage,
    #[serde(with = "duration")]
    pub timeout: Duration,
    #[serde(with = "duration")]
    pub poll_interval: Duration,
    #[serde(with = "duration")]
    pub owed_window: Duration,
    pub max_waiters: usize,
    /// `None`: as many as there are in all.
    #[serde(default)]
    pub max_waiters_per_caller: Option<usize>,
    pub deprecated_since: Timestamp,
    #[serde(default)]
    pub sunset: Option<Timestamp>,
    /// Windows in which v1 answers 410, whatever the stage.
    #[serde(default)]
    pub brownouts: Vec<Brownout>,
    /// How long nobody may have called v1 before it counts as removable.
    #[serde(with = "duration")]
    pub quiet_period: Duration,
    /// What the proxy in front waits, as far as its operator told.
    #[serde(default, with = "duration::optional")]
    pub proxy_timeout: Option<Duration>,
    /// A jq program that makes the 200 body of v1 from a `ProtocolResponse`.
    #[serde(default)]
    pub response: Option<String>,
}

/// A time in which v1 is closed to find who still uses it; `to` does not belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brownout {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Legacy {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if !(Duration::from_millis(10)..=Duration::from_hours(24)).contains(&self.timeout) {
            problems.push(Problem::new("legacy.timeout", "is not between 10ms and 24h"));
        }
        if !(Duration::from_millis(10)..=Duration::from_mins(1)).contains(&self.poll_interval) {
            problems.push(Problem::new("legacy.poll_interval", "is not between 10ms and 1m; the default is 2s"));
        }
        if self.max_waiters_per_caller == Some(0) {
            problems
                .push(Problem::new("legacy.max_waiters_per_caller", "is 0, so no v1 call could wait; write at least 1, or leave it out"));
        }
        if self.max_waiters == 0 {
            problems.push(Problem::new("legacy.max_waiters", "is 0, so no v1 call could wait; write at least 1"));
        }
        if let Some(sunset) = self.sunset
            && sunset < self.deprecated_since
        {
            problems.push(Problem::new("legacy.sunset", "is before legacy.deprecated_since; RFC 8594 wants it after"));
        }
        for Brownout { from, to } in &self.brownouts {
            if from >= to {
                problems.push(Problem::new("legacy.brownouts", format!("the one from {from} ends before it begins")));
            }
        }
        if self.quiet_period < Duration::from_secs(1) {
            problems.push(Problem::new(
                "legacy.quiet_period",
                "is under 1s, so v1 would count as removable between two calls; the default is 90d",
            ));
        }
        if self.proxy_timeout.is_some_and(|timeout| timeout.is_zero()) {
            problems.push(Problem::new("legacy.proxy_timeout", "is 0; write what the proxy in front waits, or leave it out"));
        }
        if let Some(program) = &self.response
            && let Err(error) = jq::Program::compile(program)
        {
            problems.push(Problem::new("legacy.response", format!("is no jq program: {error}")));
        }
    }

    pub(super) fn warn(&self, warnings: &mut Vec<Problem>) {
        if let Some(proxy) = self.proxy_timeout
            && proxy <= self.timeout
        {
            warnings.push(Problem::new(
                "legacy.proxy_timeout",
                format!(
                    "the proxy gives up after {}, before legacy.timeout ({}): callers get the proxy's own page, without their task's id; \
                     raise the proxy's time-out (see /docs/migration) or lower legacy.timeout",
                    duration::words(proxy),
                    duration::words(self.timeout)
                ),
            ));
        }
    }
}
