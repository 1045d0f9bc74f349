//! `[agenda]`: where agendas come from.

use super::{Problem, Secret, duration};
use crate::base::jq;
use serde::Deserialize;
use std::{path::Path, time::Duration};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgendaConfig {
    /// `samples`, a folder, or `https://host/path/{agendaId}`.
    pub source: String,
    /// `auto`, `native`, `oparl`, `legistar` or `mapped`.
    pub format: String,
    /// A jq program that makes our own format of whatever comes.
    #[serde(default)]
    pub mapping: Option<String>,
    #[serde(with = "duration")]
    pub timeout: Duration,
    #[serde(default)]
    pub token: Secret,
    pub allowed_hosts: Vec<String>,
    pub max_per_host: usize,
    #[serde(with = "duration")]
    pub ready_grace: Duration,
    /// For agendas that name no zone of their own.
    #[serde(default)]
    pub timezone: Option<String>,
}

/// The formats that can be named.
const FORMATS: [&str; 5] = ["auto", "native", "oparl", "legistar", "mapped"];

impl AgendaConfig {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, reason: String| problems.push(Problem::new(format!("agenda.{key}"), reason));
        if let Some((scheme, _)) = self.source.split_once("://") {
            let usable = reqwest::Url::parse(&self.source).is_ok_and(|url| url.has_host()) && matches!(scheme, "http" | "https");
            if !usable || !self.source.contains("{agendaId}") {
                let reason = "is not an address with a place for the id; write it like https://agenda.example.org/api/agenda/{agendaId}";
                refuse("source", format!("{:?} {reason}", self.source));
            }
        } else if self.source != "samples" && !Path::new(&self.source).is_dir() {
            refuse("source", format!("there is no folder {:?}; write samples, a folder, or https://host/path/{{agendaId}}", self.source));
        }
        if !FORMATS.contains(&self.format.as_str()) {
            refuse("format", format!("{:?} is none of {}", self.format, FORMATS.join(", ")));
        }
        match &self.mapping {
            Some(_) if !matches!(self.format.as_str(), "auto" | "mapped") => {
                refuse(
                    "mapping",
                    format!("is never used while agenda.format is {:?}; write mapped, or leave one of them out", self.format),
                );
            }
            Some(program) => {
                if let Err(error) = jq::Program::compile(program) {
                    refuse("mapping", format!("is no jq program: {error}"));
                }
            }
            None if self.format == "mapped" => refuse("mapping", "is missing, and agenda.format is mapped; write a jq program".to_owned()),
            None => {}
        }
        if self.timeout.is_zero() {
            refuse("timeout", "is 0, so no request could be answered; the default is 60s".to_owned());
        }
        if self.max_per_host == 0 {
            refuse("max_per_host", "is 0, so nothing could be fetched; write at least 1".to_owned());
        }
        if let Some(zone) = &self.timezone
            && jiff::tz::TimeZone::get(zone).is_err()
        {
            refuse("timezone", format!("{zone:?} is not a time zone; write an IANA name such as Europe/Moscow"));
        }
    }

    pub(super) fn warn(&self, warnings: &mut Vec<Problem>) {
        if self.source.starts_with("http://") && !self.token.is_empty() {
            warnings.push(Problem::new("agenda.token", "travels unencrypted to agenda.source; use https if it leaves this machine"));
        }
    }
}
