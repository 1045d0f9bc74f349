//! Why a request to another service gave no answer, and whether it is worth repeating at once.

use crate::base::{chain::chain, outgoing::refused};
use reqwest::{Response, Url};
use reqwest_retry::{RetryError, Retryable, RetryableStrategy, default_on_request_failure, default_on_request_success};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The guard refused; nothing was sent.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
    /// It took longer than a request may.
    #[error("{0}")]
    TooSlow(String),
}

/// What may be over in a moment. Not what the guard refused, and not what took all the time that a request may take: that would cost it several times over.
pub(super) struct PassingFaults;

impl RetryableStrategy for PassingFaults {
    fn handle(&self, answer: &Result<Response, reqwest_middleware::Error>) -> Option<Retryable> {
        match answer {
            Ok(response) => default_on_request_success(response),
            Err(error) if refused(error).is_some() => Some(Retryable::Fatal),
            Err(reqwest_middleware::Error::Reqwest(error)) if error.is_timeout() && !error.is_connect() => Some(Retryable::Fatal),
            Err(error) => default_on_request_failure(error),
        }
    }
}

/// What happened, in words that hold neither the token nor a library's inner life.
pub(super) fn plain(error: &reqwest_middleware::Error, url: &Url) -> UpstreamError {
    let shown = shown(url);
    if let Some(refused) = refused(error) {
        return UpstreamError::Refused(format!("{shown} is not asked: {refused}"));
    }
    tracing::info!(url = shown, error = chain(error).replace(url.as_str(), &shown), "a request failed");
    match beneath(error) {
        Some(error) if error.is_timeout() && !error.is_connect() => UpstreamError::TooSlow(format!("{shown} did not answer in time")),
        Some(error) if error.is_connect() => UpstreamError::Unreachable(format!("{shown} could not be connected to")),
        _ => UpstreamError::Unreachable(format!("{shown} broke the exchange off")),
    }
}

/// The client's own error below those of the layers that repeat requests.
fn beneath(error: &reqwest_middleware::Error) -> Option<&reqwest::Error> {
    match error {
        reqwest_middleware::Error::Reqwest(error) => Some(error),
        reqwest_middleware::Error::Middleware(error) => match error.downcast_ref::<RetryError>()? {
            RetryError::WithRetries { err: error, .. } | RetryError::Error(error) => beneath(error),
        },
    }
}

/// The address for people: a query or a password may hold what only its host is to know.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // An address without a host cannot have them.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    if url.query().is_some() {
        shown.set_query(Some("…"));
    }
    shown.set_fragment(None);
    // The only character that such a query has is one that would be written in its encoded form.
    shown.to_string().replace("?%E2%80%A6", "?…")
}
