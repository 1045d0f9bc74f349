//! Requests to other services: bounded per host, guarded, repeated by a library when they fail in passing, never redirected past the guard.

use super::{
    LinkError, OpenedFile,
    guard::{Guard, Trust},
};
use crate::base::{
    chain::chain,
    config::{self, Secret},
    spans::{Span, SpanKind},
    tls,
};
use futures::StreamExt as _;
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_NONE_MATCH, LOCATION},
    redirect,
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::{Jitter, RetryError, RetryTransientMiddleware, policies::ExponentialBackoff};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The client; cheap to clone, and all clones share the limits per host.
#[derive(Debug, Clone)]
pub struct Upstream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: ClientWithMiddleware,
    guard: Guard,
    token: Secret,
    max_per_host: usize,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// How far a redirect may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Within the origin that was asked.
    SameOrigin,
    /// Wherever a request of our own could go.
    Allowed,
}

/// An answer, and the place at its host that it holds until its body has been read.
#[derive(Debug)]
pub struct Answer {
    pub response: Response,
    permit: OwnedSemaphorePermit,
    /// Lasts until the body has been read, too.
    span: Span,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The guard refused; nothing was sent.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
}

const MAX_REDIRECTS: usize = 5;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Repeats within one look: a passing fault costs a second, a lasting one is left to the task's own retries.
const MAX_REPEATS: u32 = 3;

impl Upstream {
    /// # Errors
    /// When the client cannot be built.
    pub fn new(config: &config::AgendaConfig, home: Option<Url>) -> Result<Self, String> {
        tls::install();
        let client = reqwest::Client::builder()
            .user_agent(concat!("protocol-bridge/", env!("CARGO_PKG_VERSION")))
            // Redirects are followed by `get`, hop by hop past the guard: the library's own would carry on before anyone is asked.
            .redirect(redirect::Policy::none())
            // The whole exchange, body included, so that an answer which drips in cannot hold a worker.
            .timeout(config.timeout)
            .connect_timeout(config.timeout.min(Duration::from_secs(10)))
            .build()
            .map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
        let policy = ExponentialBackoff::builder()
            .retry_bounds(Duration::from_millis(200), Duration::from_secs(2))
            .jitter(Jitter::Bounded)
            .build_with_max_retries(MAX_REPEATS);
        let client = ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(policy)).build();
        Ok(Self(Arc::new(Inner {
            client,
            guard: Guard::new(home, &config.allowed_hosts),
            token: config.token.clone(),
            max_per_host: config.max_per_host.max(1),
            hosts: Mutex::default(),
        })))
    }

    /// Sends a GET; statuses other than redirects are the caller's to judge.
    ///
    /// # Errors
    /// See [`UpstreamError`].
    pub async fn get(&self, url: &Url, etag: Option<&str>, follow: Follow) -> Result<Answer, UpstreamError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let trust = self.0.guard.check(&url).map_err(UpstreamError::Refused)?;
            let permit = self.place_at(&url).await;
            let mut request = self.0.client.get(url.clone()).header(ACCEPT, "application/json, */*;q=0.8");
            if trust == Trust::Home && !self.0.token.expose().is_empty() {
                request = request.bearer_auth(self.0.token.expose());
            }
            if let Some(etag) = etag {
                request = request.header(IF_NONE_MATCH, etag);
            }
            let span = span_of(&url);
            if let Some(place) = span.place() {
                request = request.header(TRACEPARENT, place.parent());
                if let Some(state) = place.state() {
                    request = request.header(TRACESTATE, state);
                }
            }
            let response = request.send().await.map_err(|error| {
                span.fail("unreachable");
                UpstreamError::Unreachable(plain(&error, &url))
            })?;
            let status = response.status();
            span.note("http.response.status_code", i64::from(status.as_u16()));
            if status.is_client_error() || status.is_server_error() {
                span.fail(status.as_str());
            }
            let Some(target) = redirect_of(&response) else { return Ok(Answer { response, permit, span }) };
            let target = url
                .join(&target)
                .map_err(|_| UpstreamError::Refused(format!("{} redirects to something that is no address", shown(&url))))?;
            if follow == Follow::SameOrigin && target.origin() != url.origin() {
                return Err(UpstreamError::Refused(format!("{} redirects to another origin, which is not followed", shown(&url))));
            }
            url = target;
        }
        Err(UpstreamError::Refused(format!("more than {MAX_REDIRECTS} redirects, the last to {}", shown(&url))))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn open(&self, url: &Url) -> Result<OpenedFile, LinkError> {
        let answer = self.get(url, None, Follow::Allowed).await.map_err(|error| match error {
            UpstreamError::Refused(reason) => LinkError::Refused(reason),
            UpstreamError::Unreachable(reason) => LinkError::Unavailable(reason),
        })?;
        if answer.response.status() != StatusCode::OK {
            return Err(LinkError::Unavailable(format!("{} answered {}", shown(url), answer.response.status())));
        }
        let bytes = answer.response.content_length();
        let media_type = answer.response.headers().get(CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
        let media_type =
            media_type.and_then(|media_type| media_type.split(';').next()).map(|media_type| media_type.trim().to_ascii_lowercase());
        Ok(OpenedFile { bytes, media_type, content: answer.into_stream() })
    }

    /// Waits for a place at the host; places are shared by all tasks of this process.
    async fn place_at(&self, url: &Url) -> OwnedSemaphorePermit {
        let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        let places = {
            let mut hosts = self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host).or_insert_with(|| Arc::new(Semaphore::new(self.0.max_per_host))))
        };
        places.acquire_owned().await.expect("these semaphores are never closed")
    }
}

impl Answer {
    /// The body; the place at the host is held until it ends or is dropped.
    #[must_use]
    pub fn into_stream(self) -> futures::stream::BoxStream<'static, io::Result<bytes::Bytes>> {
        let held = (self.permit, self.span);
        self.response
            .bytes_stream()
            .map(move |piece| {
                let (_place, span) = &held;
                if piece.is_err() {
                    span.fail("broke off");
                }
                piece.map_err(io::Error::other)
            })
            .boxed()
    }
}

fn redirect_of(response: &Response) -> Option<String> {
    let follows = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    if !follows {
        return None;
    }
    response.headers().get(LOCATION)?.to_str().ok().map(str::to_owned)
}

/// What happened, in words that hold neither the token nor a library's inner life.
fn plain(error: &reqwest_middleware::Error, url: &Url) -> String {
    let what = match beneath(error) {
        Some(error) if error.is_timeout() => "did not answer in time",
        Some(error) if error.is_connect() => "could not be connected to",
        _ => "broke the exchange off",
    };
    let shown = shown(url);
    tracing::info!(url = shown, error = chain(error).replace(url.as_str(), &shown), "a request failed");
    format!("{shown} {what}")
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

/// The address for people: a query may hold what only its host is to know.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    if url.query().is_some() {
        shown.set_query(Some("…"));
    }
    shown.set_fragment(None);
    // The only character that such a query has is one that would be written in its encoded form.
    shown.to_string().replace("?%E2%80%A6", "?…")
}

fn span_of(url: &Url) -> Span {
    let span = Span::child("GET".to_owned(), SpanKind::Client);
    span.note("http.request.method", "GET");
    span.note("url.full", shown(url));
    span.note("server.address", url.host_str().unwrap_or_default().to_owned());
    if let Some(port) = url.port_or_known_default() {
        span.note("server.port", i64::from(port));
    }
    span
}
