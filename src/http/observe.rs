//! The outermost layer: every request gets its id, every answer its `X-Request-Id`, its log line and its metric, every problem its body, every panic a 500.
//!
//! A client that hangs up drops the future in here; the guard still writes the log line.

use super::legacy_headers; // goes with v1
use super::{Api, Problem, ProblemType, RequestProblem, access, problem::MEDIA_TYPE, trace};
use crate::{
    base::{
        chain::chain,
        clock::Monotonic,
        metrics,
        spans::{self, Span, SpanKind},
    },
    domain::{
        ids::{AgendaId, RequestId},
        trace::TraceContext,
    },
};
use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{
        HeaderName, HeaderValue, Method, StatusCode,
        header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures::FutureExt as _;
use std::{any::Any, panic::AssertUnwindSafe};
use tracing::{Instrument as _, field};
use uuid::Uuid;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Status classes as labels.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
const OTHER: &str = "other";

/// Makes every request's series exist at 0.
pub fn register_metrics() {
    for class in CLASSES {
        for route in access::ROUTES {
            metrics::HTTP_REQUEST.register(&[route.path, route.method, class]);
        }
        metrics::HTTP_REQUEST.register(&[OTHER, OTHER, class]);
    }
}

/// Marks an answer whose status is an error's but whose body is as it should be.
#[derive(Debug, Clone, Copy)]
pub struct AsIs;

/// Runs a request and finishes its answer.
pub async fn observe(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let since = api.clock.monotonic();
    let request_id: RequestId = api.entropy.id(api.clock.now());
    request.extensions_mut().insert(request_id);
    let is_legacy = request.uri().path().starts_with(legacy_headers::PREFIX); // goes with v1
    let mut line = Line::begin(&api, &request, request_id, since);
    line.note_path(request.uri().path());
    request.extensions_mut().insert(line.place.clone());
    let run = line.span.around(AssertUnwindSafe(next.run(request)).catch_unwind()).instrument(line.log.clone());

    let mut response = match run.await {
        Ok(response) => response,
        Err(panic) => Problem::internal(Panicked(said_by(&*panic))).into_response(),
    };
    complete_problem(&mut response, request_id);
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, HeaderValue::try_from(request_id.to_string()).expect("a UUID is a header value"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    if api.draining.is_cancelled() || api.shutdown.soft().is_cancelled() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // goes with v1: begin
    if is_legacy {
        legacy_headers::add(&api.config.legacy, &mut response);
    }
    // goes with v1: end
    line.end(&response);
    response
}

/// Writes a problem's body, now that the request's id is at hand, and turns what the framework refused by itself into a problem.
fn complete_problem(response: &mut Response, request_id: RequestId) {
    if response.extensions().get::<AsIs>().is_some() {
        return;
    }
    if response.extensions().get::<Problem>().is_none() {
        let problem = match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => {
                Problem::request(RequestProblem::MethodNotAllowed, "The address exists, but not for this method.")
            }
            status if status.is_client_error() => Problem::request(RequestProblem::InvalidRequest, "The request could not be read."),
            status if status.is_server_error() => Problem::internal(Panicked(format!("an answer {status} without a problem"))),
            _ => return,
        };
        let allow = response.headers().get(ALLOW).cloned();
        *response = problem.into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(ALLOW, allow);
        }
    }
    let Some(problem) = response.extensions().get::<Problem>() else { return };
    let body = problem.body(request_id);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    *response.body_mut() = Body::from(body);
}

/// Something that must not happen.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Panicked(String);

fn said_by(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a handler panicked: {}", text.unwrap_or_else(|| "without a text".to_owned()))
}

/// The log line and metric of one request; dropped before its end when the client hangs up.
struct Line {
    api: Api,
    method: Method,
    matched: Option<MatchedPath>,
    /// The request in the log: what it is known by stands beside every line that is written on its behalf.
    log: tracing::Span,
    /// The request in its trace.
    span: Span,
    /// Where that is, for the task that the request submits.
    place: TraceContext,
    since: Monotonic,
    open: bool,
}

impl Line {
    fn begin(api: &Api, request: &Request, request_id: RequestId, since: Monotonic) -> Self {
        let matched = request.extensions().get::<MatchedPath>().cloned();
        let route = matched.as_ref().and_then(|path| access::find(request.method(), path.as_str()));
        let name = route.map_or_else(|| OTHER.to_owned(), |route| format!("{} {}", route.method, route.path));
        let given = trace::of(request.headers());
        let begun = Span::below(given.as_ref(), name.clone(), SpanKind::Server);
        let (span, place) = if let Some(place) = begun.place() {
            (begun, place)
        } else {
            // Nobody records it, and nobody gave it a place: it gets one all the same, for what is called and logged on its behalf.
            let [trace_id, span_id] = [(); 2].map(|()| api.entropy.id::<Uuid>(api.clock.now()));
            let place = TraceContext::new(trace_id.as_u128(), span_id.as_u64_pair().1);
            (Span::below(Some(&place), name, SpanKind::Server), place)
        };
        if let Some(route) = route {
            span.note("http.route", route.path);
        }
        span.note("http.request.method", route.map_or("_OTHER", |route| route.method));
        span.note("requestId", request_id.to_string());
        // At the highest level, so that no filter leaves a warning without what it is about.
        let log = tracing::error_span!(
            "request",
            requestId = %request_id,
            traceId = place.trace_id(),
            caller = field::Empty,
            taskId = field::Empty,
            agendaId = field::Empty,
        );
        Self { api: api.clone(), method: request.method().clone(), matched, log, span, place, since, open: true }
    }

    /// Takes what the path says of the task or the agenda.
    fn note_path(&self, path: &str) {
        let Some(matched) = &self.matched else { return };
        for (name, value) in matched.as_str().split('/').zip(path.split('/')) {
            match name {
                "{taskId}" if value.parse::<Uuid>().is_ok() => self.note("taskId", value.to_owned()),
                "{agendaId}" if value.parse::<AgendaId>().is_ok() => self.note("agendaId", value.to_owned()),
                _ => {}
            }
        }
    }

    fn note(&self, key: &'static str, value: String) {
        self.log.record(key, value.as_str());
        self.span.note(key, value);
    }

    fn end(&mut self, response: &Response) {
        self.open = false;
        // goes with v1: begin
        if let Some(task) = response.headers().get(legacy_headers::TASK_ID).and_then(|task| task.to_str().ok()) {
            self.note("taskId", task.to_owned());
        }
        // goes with v1: end
        let took = self.api.clock.monotonic().since(self.since);
        let status = response.status();
        let (route, method) = self.labels();
        let class = CLASSES[usize::from(status.as_u16() / 100).clamp(2, 5) - 2];
        metrics::HTTP_REQUEST.record(&[route, method, class], took);

        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let problem = response.extensions().get::<Problem>();
        let code = problem.map(|problem| problem.kind().entry().code);
        let cause = problem.and_then(Problem::cause).map(|cause| chain(cause));
        self.span.note("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            self.span.fail(code.unwrap_or("internal"));
        }
        let _on_behalf = self.log.enter();
        let inside = problem.is_some_and(|problem| matches!(problem.kind(), ProblemType::Failure(_)) && status.is_server_error());
        if cause.is_some() && inside {
            tracing::error!(method = %self.method, route, status = status.as_u16(), ms = milliseconds, code, cause, "request failed");
        } else if cause.is_some() {
            tracing::warn!(method = %self.method, route, status = status.as_u16(), ms = milliseconds, code, cause, "request refused");
        } else {
            tracing::info!(method = %self.method, route, status = status.as_u16(), ms = milliseconds, code, "request");
        }
    }

    /// Labels of the router's own table; whatever a client makes up is `other`.
    fn labels(&self) -> (&'static str, &'static str) {
        let route = self.matched.as_ref().and_then(|path| access::find(&self.method, path.as_str()));
        route.map_or((OTHER, OTHER), |route| (route.path, route.method))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.open {
            let took = self.api.clock.monotonic().since(self.since);
            let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let _on_behalf = self.log.enter();
            tracing::info!(method = %self.method, route = self.labels().0, ms = milliseconds, "client gone before the answer");
        }
    }
}

/// What a handler found out about its request, for the log and the trace.
pub fn note(key: &'static str, value: String) {
    tracing::Span::current().record(key, value.as_str());
    spans::note(key, value);
}
