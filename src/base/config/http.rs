//! `[http]`: where and how it listens.

use super::{Problem, text};
use bytesize::ByteSize;
use serde::Deserialize;
use std::net::SocketAddr;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    #[serde(deserialize_with = "text::address")]
    pub listen: SocketAddr,
    #[serde(default)]
    pub public_url: Option<String>,
    #[serde(deserialize_with = "text::size")]
    pub body_limit: ByteSize,
    /// Addresses or networks whose `X-Forwarded-For` is believed.
    #[serde(default)]
    pub trusted_proxies: Vec<String>,
    /// Whether `GET /debug/hold` is there.
    pub debug_hold: bool,
}

impl Http {
    /// Only this machine can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if let Some(url) = &self.public_url {
            let usable = reqwest::Url::parse(url).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none() && url.fragment().is_none()
            });
            if !usable {
                problems.push(Problem::new(
                    "http.public_url",
                    format!("{url:?} is not an address callers could use; write it like https://protocols.example.org"),
                ));
            }
        }
        if self.body_limit.as_u64() < 1024 {
            problems.push(Problem::new("http.body_limit", format!("{} holds no request; write at least 1KiB", self.body_limit)));
        }
        for proxy in &self.trusted_proxies {
            super::auth::validate_network("http.trusted_proxies", proxy, problems);
        }
    }
}
