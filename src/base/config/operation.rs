//! `[shutdown]` and `[telemetry]`: how it ends, and what it says meanwhile.

use super::{Problem, duration};
use serde::Deserialize;
use std::time::Duration;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownConfig {
    #[serde(with = "duration")]
    pub announce: Duration,
    #[serde(with = "duration")]
    pub grace: Duration,
    #[serde(default, with = "duration::optional")]
    pub waiter_grace: Option<Duration>,
}

impl ShutdownConfig {
    /// How long those who wait may stay: as long as running attempts, unless written otherwise.
    #[must_use]
    pub fn waiter_grace(&self) -> Duration {
        self.waiter_grace.unwrap_or(self.grace)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// A `tracing` filter, such as `info` or `protocol_bridge=debug`.
    pub log: String,
    pub format: LogFormat,
    /// Where an OpenTelemetry collector takes OTLP over HTTP; nobody: spans are not recorded.
    #[serde(default)]
    pub otlp_endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

impl Telemetry {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if let Err(error) = self.log.parse::<tracing_subscriber::EnvFilter>() {
            problems.push(Problem::new("telemetry.log", format!("{error}; write it like info or warn,protocol_bridge=debug")));
        }
        if let Some(endpoint) = &self.otlp_endpoint {
            let usable = reqwest::Url::parse(endpoint).is_ok_and(|url| {
                let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
                matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
            });
            if !usable {
                // It is not repeated: it may hold a password.
                problems.push(Problem::new(
                    "telemetry.otlp_endpoint",
                    "is not an address without login and query; write it like http://otel-collector:4318, and what proves who we are as \
                     OTEL_EXPORTER_OTLP_HEADERS in the environment",
                ));
            }
        }
    }
}
