//! Requests to other services: bounded per host, guarded, repeated by a library when they fail in passing, never redirected past the guard.

use super::{
    LinkError, Opened, OpenedFile,
    hosts::{Hosts, Trust},
    upstream_error::{PassingFaults, UpstreamError, plain, shown},
};
use crate::base::{
    config::{self, Secret},
    outgoing::{Guard, Network},
    spans::{Span, SpanKind},
};
use futures::StreamExt as _;
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_NONE_MATCH, LOCATION},
};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry::{Jitter, RetryTransientMiddleware, policies::ExponentialBackoff};
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
    hosts: Hosts,
    token: Secret,
    max_per_host: usize,
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
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

const MAX_REDIRECTS: usize = 5;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Repeats within one look: a passing fault costs a second, a lasting one is left to the task's own retries.
const MAX_REPEATS: u32 = 3;

impl Upstream {
    /// # Errors
    /// When the client cannot be built.
    pub fn new(config: &config::AgendaConfig, home: Option<Url>) -> Result<Self, String> {
        Self::guarded(config, home, Guard::closed())
    }

    /// Over another network than the machine's.
    ///
    /// # Errors
    /// When the client cannot be built.
    pub fn over(network: Arc<dyn Network>, config: &config::AgendaConfig, home: Option<Url>) -> Result<Self, String> {
        Self::guarded(config, home, Guard::closed().over(network))
    }

    // Hosts that the operator has named may be private and without TLS; all others are refused by name.
    fn guarded(config: &config::AgendaConfig, home: Option<Url>, guard: Guard) -> Result<Self, String> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("protocol-bridge/", env!("CARGO_PKG_VERSION")))
            // The whole exchange, body included, so that an answer which drips in cannot hold a worker.
            .timeout(config.timeout)
            .connect_timeout(config.timeout.min(Duration::from_secs(10)));
        let policy = ExponentialBackoff::builder()
            .retry_bounds(Duration::from_millis(200), Duration::from_secs(2))
            .jitter(Jitter::Bounded)
            .build_with_max_retries(MAX_REPEATS);
        let client = guard.client(builder).map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
        let client = client.with(RetryTransientMiddleware::new_with_policy_and_strategy(policy, PassingFaults)).build();
        Ok(Self(Arc::new(Inner {
            client,
            guard,
            hosts: Hosts::new(home, &config.allowed_hosts),
            token: config.token.clone(),
            max_per_host: config.max_per_host.max(1),
            places: Mutex::default(),
        })))
    }

    /// Sends a GET; statuses other than redirects are the caller's to judge.
    ///
    /// # Errors
    /// See [`UpstreamError`].
    pub async fn get(&self, url: &Url, etag: Option<&str>, follow: Follow) -> Result<Answer, UpstreamError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let trust = self.trust(&url).map_err(UpstreamError::Refused)?;
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
                plain(&error, &url)
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

    /// Opens a file for reading, unless it still is what the ETag named.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn open(&self, url: &Url, etag: Option<&str>) -> Result<Opened, LinkError> {
        let answer = self.get(url, etag, Follow::Allowed).await.map_err(|error| match error {
            UpstreamError::Refused(reason) => LinkError::Refused(reason),
            UpstreamError::Unreachable(reason) => LinkError::Unavailable(reason),
            UpstreamError::TooSlow(reason) => LinkError::TooSlow(reason),
        })?;
        match answer.response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if etag.is_some() => return Ok(Opened::Unchanged),
            status @ (StatusCode::NOT_FOUND | StatusCode::GONE) => {
                return Err(LinkError::Missing(format!("{} answered {status}", shown(url))));
            }
            status => return Err(LinkError::Unavailable(format!("{} answered {status}", shown(url)))),
        }
        let bytes = answer.response.content_length();
        let media_type = header_of(answer.response.headers(), &CONTENT_TYPE);
        let media_type = media_type
            .as_deref()
            .and_then(|media_type| media_type.split(';').next())
            .map(|media_type| media_type.trim().to_ascii_lowercase());
        let etag = header_of(answer.response.headers(), &ETAG);
        Ok(Opened::File(OpenedFile { bytes, media_type, etag, content: answer.into_stream() }))
    }

    fn trust(&self, url: &Url) -> Result<Trust, String> {
        self.0.guard.check(url).map_err(|refused| format!("{} is not asked: {refused}", shown(url)))?;
        let host = url.host_str().unwrap_or_default();
        self.0.hosts.trust(url).ok_or_else(|| format!("{host} is neither the agenda's own host nor one of agenda.allowed_hosts"))
    }

    /// Waits for a place at the host; places are shared by all tasks of this process.
    async fn place_at(&self, url: &Url) -> OwnedSemaphorePermit {
        let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        let places = {
            let mut hosts = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host).or_insert_with(|| Arc::new(Semaphore::new(self.0.max_per_host))))
        };
        places.acquire_owned().await.expect("these semaphores are never closed")
    }
}

impl Answer {
    /// The body; the place at the host is held until it ends or is dropped. What does not arrive in time ends with [`io::ErrorKind::TimedOut`], what breaks off
    /// with [`io::ErrorKind::UnexpectedEof`].
    #[must_use]
    pub fn into_stream(self) -> futures::stream::BoxStream<'static, io::Result<bytes::Bytes>> {
        let held = (self.permit, self.span);
        self.response
            .bytes_stream()
            .map(move |piece| {
                let (_place, span) = &held;
                piece.map_err(|error| {
                    span.fail("broke off");
                    let kind = if error.is_timeout() { io::ErrorKind::TimedOut } else { io::ErrorKind::UnexpectedEof };
                    io::Error::new(kind, error)
                })
            })
            .boxed()
    }
}

fn header_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
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
    header_of(response.headers(), &LOCATION)
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
