//! `[auth]` and `[[callers]]`: who may call, and what proves who they are.

use super::{Problem, Secret, duration, text};
use crate::domain::time::Timestamp;
use serde::{Deserialize, Deserializer};
use std::{collections::HashSet, net::IpAddr, time::Duration};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Serve anyone on any address without proof of who they are.
    pub disabled: bool,
    /// What a call may do whose name nothing proves, once there are callers.
    #[serde(default)]
    pub anonymous_roles: Vec<Role>,
    /// Seals what is kept secretly; empty: on SQLite one is made and kept in `data_dir`, on PostgreSQL there is none.
    #[serde(default)]
    pub secret_key: Secret,
    /// How often one caller may use the task API; unlimited if not set.
    #[serde(default, deserialize_with = "rate")]
    pub rate_limit: Option<Rate>,
}

impl Auth {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if !self.secret_key.is_empty() && self.secret_key.expose().trim().len() < SHORTEST_SECRET_KEY {
            problems.push(Problem::new(
                "auth.secret_key",
                format!("is shorter than {SHORTEST_SECRET_KEY} characters and can be guessed; make one with: openssl rand -base64 32"),
            ));
        }
    }
}

const SHORTEST_SECRET_KEY: usize = 32;

/// So many requests in such a time; as many may come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub per: Duration,
}

impl Rate {
    fn parse(text: &str) -> Option<Self> {
        let (requests, per) = text.split_once('/')?;
        let rate = Self { requests: requests.trim().parse().ok()?, per: duration::parse(per.trim())? };
        // Finer than nanoseconds is no rate any more.
        (rate.requests > 0 && rate.per.checked_div(rate.requests).is_some_and(|each| !each.is_zero())).then_some(rate)
    }
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    text::deserialize(deserializer, "requests in a time, written like 600/1m or 20/1s", Rate::parse).map(Some)
}

/// A caller that is known by name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallerConfig {
    pub name: String,
    pub roles: Vec<Role>,
    /// Hex SHA-256 of its key.
    #[serde(default)]
    pub key_sha256: Option<String>,
    /// Networks it calls from, together with `user_agent`.
    #[serde(default)]
    pub networks: Vec<String>,
    #[serde(default)]
    pub user_agent: Option<String>,
    /// It does not call any more: its proof gives no rights.
    #[serde(default)]
    pub retired: bool,
    /// From then on v1 answers it 410.
    #[serde(default)]
    pub cut_off: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Legacy,
    Submit,
    Read,
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Legacy, Self::Submit, Self::Read, Self::Admin];

    /// As it is written in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Submit => "submit",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

pub(super) fn validate_callers(callers: &[CallerConfig], problems: &mut Vec<Problem>) {
    let mut names = HashSet::new();
    for (place, caller) in callers.iter().enumerate() {
        let key = |field: &str| format!("callers[{place}].{field}");
        if let Err(reason) = check_name(&caller.name) {
            problems.push(Problem::new(key("name"), reason));
        } else if !names.insert(&caller.name) {
            problems.push(Problem::new(key("name"), format!("{:?} is there twice; give each caller its own name", caller.name)));
        }
        if let Some(hash) = &caller.key_sha256
            && !(hash.len() == 64 && hash.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')))
        {
            let reason = "is not a SHA-256 in 64 lower-case hex digits; make it with: printf %s KEY | sha256sum";
            problems.push(Problem::new(key("key_sha256"), reason));
        }
        for network in &caller.networks {
            validate_network(&key("networks"), network, problems);
        }
        if caller.networks.is_empty() != caller.user_agent.is_none() {
            problems.push(Problem::new(key("networks"), "proves a name together with user_agent only; write both or neither"));
        }
        if caller.key_sha256.is_none() && caller.networks.is_empty() && !caller.retired {
            problems.push(Problem::new(
                key("key_sha256"),
                "nothing proves this caller's name; write key_sha256, or networks with user_agent, or retired = true",
            ));
        }
    }
}

/// Checks a caller's name, which becomes a label, a log field and a row of the ledger. No name that is only claimed can look like one that is proved: those that
/// would are given a mark which no name can hold.
///
/// # Errors
/// When it cannot be one.
pub fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        Err(format!("{name:?} is not a name; use 1 to 64 of A-Z a-z 0-9 . _ -"))
    } else if matches!(name, "other" | "unknown" | "anonymous") {
        Err(format!("{name:?} is what callers without a name are called; choose another"))
    } else {
        Ok(())
    }
}

/// An address, or a network in CIDR form.
pub(super) fn validate_network(key: &str, text: &str, problems: &mut Vec<Problem>) {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
    let valid = address.parse::<IpAddr>().is_ok_and(|address| {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        prefix.is_none_or(|prefix| prefix.parse::<u8>().is_ok_and(|prefix| prefix <= bits))
    });
    if !valid {
        problems.push(Problem::new(key, format!("{text:?} is neither an address nor a network; write it like 10.0.0.7 or 10.0.0.0/8")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_people_write_them() {
        for (text, requests, seconds) in [("600/1m", 600, 60), ("20 / 1s", 20, 1), ("1/1h", 1, 3600)] {
            assert_eq!(Rate::parse(text), Some(Rate { requests, per: Duration::from_secs(seconds) }), "{text}");
        }
        for text in ["", "600", "0/1m", "-1/1m", "10/0s", "10/m", "4000000000/1s", "off"] {
            assert_eq!(Rate::parse(text), None, "{text:?}");
        }
    }
}
