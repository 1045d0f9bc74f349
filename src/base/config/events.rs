//! `[events]`: who is told when a task has ended, and how often it is tried.

use super::{Problem, Secret, check_name, duration};
use crate::domain::{
    delivery::{MOST_TRIES, WebhookSecret},
    event::EventType,
};
use serde::{Deserialize, Deserializer};
use std::{collections::HashSet, time::Duration};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// What the subjects begin with under which events go to NATS JetStream; none: they do not.
    #[serde(default)]
    pub nats_subject: Option<String>,
    pub subscriptions: Vec<SubscriptionConfig>,
    pub allow_private_targets: bool,
    /// How long one try may take in all.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The wait before each try of a delivery.
    #[serde(deserialize_with = "durations")]
    pub schedule: Vec<Duration>,
    /// How many tries for one receiver are under way at once.
    pub max_per_receiver: usize,
}

/// A webhook that the operator has written down.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionConfig {
    pub name: String,
    pub url: String,
    /// Empty: all.
    #[serde(default)]
    pub types: Vec<String>,
    /// `whsec_…`.
    #[serde(default)]
    pub secret: Secret,
    /// A file that holds it.
    #[serde(default)]
    pub secret_file: Option<String>,
}

impl SubscriptionConfig {
    /// The secret, from wherever it is written.
    ///
    /// # Errors
    /// Why there is none.
    pub fn secret(&self) -> Result<WebhookSecret, String> {
        let text = match &self.secret_file {
            None if self.secret.is_empty() => return Err("write secret, or secret_file: receivers know us by it".to_owned()),
            None => self.secret.expose().to_owned(),
            Some(_) if !self.secret.is_empty() => return Err("is written twice, as secret and as secret_file".to_owned()),
            Some(path) => std::fs::read_to_string(path).map_err(|error| format!("the file {path} cannot be read: {error}"))?,
        };
        text.trim().parse().map_err(|error: crate::domain::delivery::InvalidSecret| error.to_string())
    }

    /// The types.
    ///
    /// # Errors
    /// Which is none.
    pub fn types(&self) -> Result<Vec<EventType>, String> {
        self.types.iter().map(|kind| kind.parse().map_err(|error: crate::domain::task::UnknownWord| error.to_string())).collect()
    }
}

impl Events {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, reason: String| problems.push(Problem::new(format!("events.{key}"), reason));
        if let Some(subject) = &self.nats_subject {
            let token = |token: &str| !token.is_empty() && token.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
            if !subject.split('.').all(token) {
                refuse("nats_subject", format!("{subject:?} is not a subject; write words of A-Z a-z 0-9 _ - with dots between them"));
            }
        }
        if self.schedule.is_empty() || self.schedule.len() > MOST_TRIES {
            refuse("schedule", format!("has to hold 1 to {MOST_TRIES} waits, one for each try"));
        }
        if !(Duration::from_millis(100)..=Duration::from_mins(5)).contains(&self.timeout) {
            refuse("timeout", "is not between 100ms and 5m; the default is 15s".to_owned());
        }
        if self.max_per_receiver == 0 {
            refuse("max_per_receiver", "is 0, so nobody would be told; write at least 1".to_owned());
        }
        let mut names = HashSet::new();
        for subscription in &self.subscriptions {
            let SubscriptionConfig { name, url, .. } = subscription;
            if let Err(reason) = check_name(name) {
                refuse("subscriptions", reason);
            } else if !names.insert(name) {
                refuse("subscriptions", format!("{name:?} is there twice; give each its own name"));
            }
            let usable = reqwest::Url::parse(url).is_ok_and(|url| {
                url.has_host()
                    && url.username().is_empty()
                    && url.password().is_none()
                    && (url.scheme() == "https" || url.scheme() == "http" && self.allow_private_targets)
            });
            if !usable {
                refuse(
                    "subscriptions",
                    format!("the url of {name} is not an https address without login (http only with events.allow_private_targets)"),
                );
            }
            for reason in [subscription.types().err(), subscription.secret().err()].into_iter().flatten() {
                refuse("subscriptions", format!("{name}: {reason}"));
            }
        }
    }

    pub(super) fn warn(&self, warnings: &mut Vec<Problem>) {
        if self.allow_private_targets {
            warnings.push(Problem::new(
                "events.allow_private_targets",
                "whoever may submit or subscribe can make this service send requests into your own network",
            ));
        }
    }
}

fn durations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Written(#[serde(with = "duration")] Duration);
    Ok(Vec::<Written>::deserialize(deserializer)?.into_iter().map(|written| written.0).collect())
}
