//! The `Prefer` header (RFC 7240): `wait=N` and `respond-async`. What is not understood is not honoured, as the RFC says.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, request::Parts},
};
use std::{convert::Infallible, time::Duration};

pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What the client would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prefer {
    pub wait_seconds: Option<u32>,
    pub respond_async: bool,
}

impl Prefer {
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut prefer = Self::default();
        for value in headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok()) {
            for preference in value.split(',') {
                let preference = preference.split(';').next().unwrap_or_default();
                let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    // The first one counts.
                    "wait" => prefer.wait_seconds = prefer.wait_seconds.or_else(|| value.parse().ok()),
                    "respond-async" => prefer.respond_async = true,
                    _ => {}
                }
            }
        }
        prefer
    }

    #[must_use]
    pub fn wait(self) -> Option<Duration> {
        self.wait_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.headers))
    }
}

/// The value that says how long the server was willing to wait.
#[must_use]
pub fn applied_wait(seconds: u64) -> HeaderValue {
    HeaderValue::try_from(format!("wait={seconds}")).expect("letters and digits are a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_the_rfc_writes_them() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(PREFER, HeaderValue::from_static(value));
            }
            let prefer = Prefer::of(&headers);
            (prefer.wait_seconds, prefer.respond_async)
        };
        assert_eq!(of(&["respond-async, wait=10"]), (Some(10), true));
        assert_eq!(of(&["Wait = \"5\" ; x=y"]), (Some(5), false));
        assert_eq!(of(&["wait=3", "wait=9, respond-async"]), (Some(3), true));
        assert_eq!(of(&["wait=-1", "return=minimal"]), (None, false));
        assert_eq!(of(&[]), (None, false));
    }
}
