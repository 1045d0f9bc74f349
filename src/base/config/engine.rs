//! `[engine]`: how tasks are moved.

use super::{NatsServers, Problem, Secret, duration, text};
use bytesize::ByteSize;
use serde::Deserialize;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// `local`, or where NATS is: `nats://…`, which may hold a password.
    pub transport: Secret,
    /// What the names of our subject, stream and consumer begin with.
    pub nats_prefix: String,
    pub max_running: usize,
    pub max_pending: u64,
    #[serde(deserialize_with = "text::size")]
    pub min_free_space: ByteSize,
    #[serde(with = "duration")]
    pub lease: Duration,
    #[serde(with = "duration")]
    pub heartbeat: Duration,
    #[serde(with = "duration")]
    pub attempt_deadline: Duration,
    pub max_attempts: u32,
    #[serde(with = "duration")]
    pub retry_base: Duration,
    pub retry_jitter: f64,
    #[serde(with = "duration")]
    pub retention_tasks: Duration,
    #[serde(with = "duration")]
    pub retention_messages: Duration,
    #[serde(with = "duration")]
    pub retention_events: Duration,
    #[serde(with = "duration")]
    pub retention_legacy_calls: Duration,
    pub demo: Toggle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    Auto,
    On,
    Off,
}

impl Engine {
    /// Whether messages go through NATS.
    #[must_use]
    pub fn uses_nats(&self) -> bool {
        NatsServers::are_meant(self.transport.expose())
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, reason: String| problems.push(Problem::new(format!("engine.{key}"), reason));
        if self.uses_nats() {
            if let Err(reason) = NatsServers::parse(self.transport.expose()) {
                refuse("transport", reason);
            }
        } else if self.transport.expose() != "local" {
            // It may hold a password, so it is not repeated.
            refuse("transport", "is not a transport; write local, or where NATS is, such as nats://nats.example.org:4222".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=64).contains(&self.nats_prefix.len()) || !self.nats_prefix.chars().all(plain) {
            refuse("nats_prefix", format!("{:?} is not the beginning of a name; use 1 to 64 of A-Z a-z 0-9 _ -", self.nats_prefix));
        }
        if !(1..=10_000).contains(&self.max_running) {
            refuse("max_running", format!("{} is not between 1 and 10000", self.max_running));
        }
        if self.max_pending == 0 {
            refuse("max_pending", "is 0, so nothing would be accepted; write at least 1".to_owned());
        }
        if self.heartbeat.is_zero() {
            refuse("heartbeat", "is 0; write a third of engine.lease".to_owned());
        }
        if self.heartbeat >= self.lease {
            refuse(
                "heartbeat",
                format!(
                    "{} is not shorter than engine.lease ({}), so every lease would run out; write a third of it",
                    duration::words(self.heartbeat),
                    duration::words(self.lease)
                ),
            );
        }
        if self.attempt_deadline < Duration::from_millis(10) {
            refuse("attempt_deadline", "leaves no time for any work; the default is 10m".to_owned());
        }
        if !(1..=100).contains(&self.max_attempts) {
            refuse("max_attempts", format!("{} is not between 1 and 100", self.max_attempts));
        }
        if self.retry_base < Duration::from_millis(1) {
            refuse("retry_base", "is 0, so a failing task would spin; the default is 2s".to_owned());
        }
        for (key, kept, least) in [
            ("retention_tasks", self.retention_tasks, HOUR),
            ("retention_messages", self.retention_messages, HOUR),
            ("retention_events", self.retention_events, HOUR),
            // They are counted by the day.
            ("retention_legacy_calls", self.retention_legacy_calls, 24 * HOUR),
        ] {
            if kept < least {
                refuse(key, format!("{} is less than {}", duration::words(kept), duration::words(least)));
            }
        }
        if !(0.0..=1.0).contains(&self.retry_jitter) {
            refuse("retry_jitter", format!("{} is not a share between 0 and 1", self.retry_jitter));
        }
    }

    pub(super) fn warn(&self, warnings: &mut Vec<Problem>) {
        if self.heartbeat < self.lease && self.heartbeat > self.lease / 3 {
            warnings.push(Problem::new(
                "engine.heartbeat",
                format!(
                    "{} is more than a third of engine.lease ({}): two renewals that fail lose the lease, and the work starts again elsewhere",
                    duration::words(self.heartbeat),
                    duration::words(self.lease)
                ),
            ));
        }
    }
}

impl<'de> Deserialize<'de> for Toggle {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Word {
            Bool(bool),
            Text(String),
        }
        match Word::deserialize(deserializer)? {
            Word::Bool(true) => Ok(Self::On),
            Word::Bool(false) => Ok(Self::Off),
            // The environment knows texts only.
            Word::Text(text) => match text.as_str() {
                "auto" => Ok(Self::Auto),
                "true" => Ok(Self::On),
                "false" => Ok(Self::Off),
                _ => Err(serde::de::Error::custom(format!("{text:?} is neither \"auto\" nor true nor false"))),
            },
        }
    }
}
