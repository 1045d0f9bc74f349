//! `[legacy]`: the v1 call.

use super::{Problem, duration};
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
    }
}
