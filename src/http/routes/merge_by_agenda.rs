//! `POST /api/v1/protocol/merge/byAgenda/{agendaId}`: the deprecated synchronous call. Puts the bridge's answer into HTTP.

use crate::{
    base::{clock::Monotonic, jq::RunError},
    bridge::{Admitted, Answer, Call, HandedOut, Refusal, answer::Gone},
    callers::Identity,
    domain::{
        ids::{AgendaId, TaskId},
        trace::TraceContext,
    },
    http::{
        Api, Problem, ProblemType, RequestProblem,
        door::IgnoredBody,
        legacy_headers::{ERROR_SOURCE, PREFIX, TASK_ID},
        parameters::PathParameter,
        prefer::{PREFERENCE_APPLIED, Prefer, applied_wait},
        shapes::{ProblemDetails, ProtocolResponse, TaskStatus, task::status_url},
    },
};
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, Method, Uri,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LOCATION},
        request::Parts,
    },
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// When a client should ask again that was told "still generating".
const ASK_AGAIN_SECONDS: u64 = 30;

/// Generate an agenda's protocol and wait for it. Deprecated: use `POST /task`.
///
/// Joins the agenda's active task. Takes no body and no idempotency key. `Prefer: wait=N` lowers the wait, `Prefer: respond-async` answers 202 at once.
#[utoipa::path(
    post,
    path = "/api/v1/protocol/merge/byAgenda/{agendaId}",
    tag = "v1",
    operation_id = "mergeByAgenda",
    params(
        ("agendaId" = String, Path, description = "The agenda.", pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", example = "42"),
        ("Prefer" = Option<String>, Header, description = "wait=N lowers the wait; respond-async answers 202 at once."),
        ("Cache-Control" = Option<String>, Header, description = "no-cache: take no answer that is owed from an earlier call."),
    ),
    responses(
        (status = 200, description = "The protocol.", body = ProtocolResponse, headers(("Task-Id" = String, description = "The task."))),
        (status = 202, description = "Accepted, with Prefer: respond-async.", body = TaskStatus),
        (status = 400, description = "Not an agenda's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Failed: the source knows no such agenda.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "Failed: not ready, or cancelled.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 410, description = "v1 is closed: to all, to this caller, or for a while.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "Failed: the agenda is not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "Failed inside.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 502, description = "Failed: the agenda source did not answer.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Not accepted, or this instance is about to stop; repeating is safe.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 504, description = "Still generating; the task goes on.", body = ProblemDetails, content_type = "application/problem+json", headers(
            ("Task-Id" = String, description = "The task."), ("Location" = String, description = "Its status."))),
    )
)]
#[deprecated = "the synchronous call; use POST /task"]
pub async fn merge_by_agenda(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(trace): Extension<TraceContext>,
    agenda_id: Result<PathParameter<AgendaId>, Problem>,
    head: Parts,
    prefer: Prefer,
    body: Result<IgnoredBody, Problem>,
) -> Response {
    let since = api.clock.monotonic();
    // Before anything else that could be wrong; the body has been heard out, so that the answer gets through.
    let admitted = match Box::pin(admit(&api, &identity, &trace, &head.uri, since)).await {
        Ok(admitted) => admitted,
        Err(gone) => return gone.into_response(),
    };
    let agenda_id = match agenda_id.and_then(|PathParameter(agenda_id)| body.map(|_| agenda_id)) {
        Ok(agenda_id) => agenda_id,
        Err(problem) => {
            Box::pin(refused(&api, &identity, &trace, &head.uri, since)).await;
            return problem.into_response();
        }
    };
    let call = Call {
        identity,
        agenda_id,
        wait: prefer.wait(),
        respond_async: prefer.respond_async,
        fresh: says_no_cache(&head.headers),
        trace,
        since,
    };
    // A call that waits keeps no more than it needs.
    drop(head);
    let answer = api.bridge.call(admitted, call).await;
    into_http(answer, prefer)
}

/// A path below v1's that is no agenda id, such as `…/../x` sent as it is: a v1 call with a bad id.
pub async fn not_an_agenda_id(api: &Api, request: &Parts) -> Problem {
    let since = api.clock.monotonic();
    if let (Some(identity), Some(trace)) = (request.extensions.get::<Identity>(), request.extensions.get::<TraceContext>()) {
        if let Err(gone) = admit(api, identity, trace, &request.uri, since).await {
            return gone;
        }
        refused(api, identity, trace, &request.uri, since).await;
    }
    Problem::invalid("invalid", "/path/agendaId", crate::domain::ids::InvalidAgendaId.to_string())
}

/// What the gate's verdict means for a v1 call: where v1 is closed anyway, a missing role does not matter. A call that is refused is a v1 call all the same: it
/// counts when one asks who still calls.
///
/// # Errors
/// What is to be answered at the gate.
pub async fn at_the_gate(
    api: &Api,
    identity: &Identity,
    (method, uri, trace): (&Method, &Uri, &TraceContext),
    verdict: Result<(), Problem>,
) -> Result<(), Problem> {
    let Err(problem) = verdict else { return Ok(()) };
    if !uri.path().starts_with(PREFIX) {
        return Err(problem);
    }
    let since = api.clock.monotonic();
    let lacks_role = matches!(problem.kind(), ProblemType::Request(RequestProblem::Unauthorized | RequestProblem::Forbidden));
    if lacks_role && method == Method::POST && api.callers.is_closed() {
        admit(api, identity, trace, uri, since).await?;
    }
    refused(api, identity, trace, uri, since).await;
    Err(problem)
}

/// Past the stage gate, or the 410.
async fn admit(api: &Api, identity: &Identity, trace: &TraceContext, uri: &Uri, since: Monotonic) -> Result<Admitted, Problem> {
    match api.bridge.admit(identity) {
        Ok(admitted) => Ok(admitted),
        Err(gone) => {
            api.bridge.turn_away(identity, named_in(uri), trace.trace_id(), since).await;
            Err(closed(gone))
        }
    }
}

/// A v1 call that came to nothing before it came to the bridge: it is logged and counted all the same.
async fn refused(api: &Api, identity: &Identity, trace: &TraceContext, uri: &Uri, since: Monotonic) {
    api.bridge.refused_at_the_door(identity, named_in(uri), trace.trace_id(), since).await;
}

/// What the path names, percent signs and all, for the log only.
fn named_in(uri: &Uri) -> &str {
    let named = uri.path().strip_prefix(PREFIX).unwrap_or_default();
    &named[..named.floor_char_boundary(128)]
}

/// The 410. No `Retry-After`, not even in a brownout: clients act on it by themselves, and nobody would notice.
fn closed(gone: Gone) -> Problem {
    let (kind, detail) = match gone {
        Gone::ForAll => (RequestProblem::LegacyGone, "The synchronous call is gone; use POST /task.".to_owned()),
        Gone::Retired => {
            (RequestProblem::LegacyGone, "The synchronous call is closed to this caller, which is retired; use POST /task.".to_owned())
        }
        Gone::CutOff(since) => {
            (RequestProblem::LegacyGone, format!("The synchronous call is closed to this caller since {since}; use POST /task."))
        }
        Gone::Unproved => {
            (RequestProblem::LegacyGone, "The synchronous call is open only to callers that prove their name; use POST /task.".to_owned())
        }
        Gone::Brownout { until } => (
            RequestProblem::LegacyBrownout,
            format!("The synchronous call is closed until {until}, to find who still uses it; use POST /task."),
        ),
    };
    Problem::request(kind, detail).replaced_by("/task")
}

fn says_no_cache(headers: &HeaderMap) -> bool {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    directives.into_iter().any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

fn into_http(answer: Answer, prefer: Prefer) -> Response {
    match answer {
        Answer::Completed { task, body, handed_out } => by_task(completed(body, handed_out), task),
        Answer::Failed(task) => by_task(Problem::of_task(&task).into_response(), task.id),
        Answer::StillRunning { task, waited } => {
            let location = HeaderValue::try_from(status_url(task.id)).expect("a UUID in a path is a header value");
            let mut response = Problem::request(RequestProblem::BridgeTimeout, "The task goes on; keep polling statusUrl.")
                .standing_at(&task)
                .ask_again_after(ASK_AGAIN_SECONDS)
                .with_header(LOCATION, location)
                .into_response();
            if prefer.wait_seconds.is_some() {
                response.headers_mut().insert(PREFERENCE_APPLIED, applied_wait(waited.as_secs()));
            }
            of_task(response, task.id)
        }
        Answer::Draining(task) => {
            let detail = "This instance is about to stop; call again to join the task on another one.";
            of_task(Problem::request(RequestProblem::Draining, detail).about(task).retry_after(1).into_response(), task)
        }
        Answer::Accepted { task, joined } => {
            let mut response = super::submit::accepted(&task, joined);
            response.headers_mut().insert(PREFERENCE_APPLIED, HeaderValue::from_static("respond-async"));
            of_task(response, task.id)
        }
        Answer::Refused(refusal) => not_accepted(refusal),
    }
}

fn not_accepted(refusal: Refusal) -> Response {
    let (problem, task) = match refusal {
        Refusal::Overloaded(why) => (Problem::overloaded(why), None),
        Refusal::TooSlow(task) => (Problem::unavailable(), task),
        Refusal::Store(error, task) => (Problem::from(error), task),
        Refusal::Unpresentable(error, task) => (Problem::internal(Unpresentable(error)), Some(task)),
    };
    match task {
        Some(task) => of_task(problem.about(task).into_response(), task),
        None => problem.into_response(),
    }
}

/// The protocol was made, and the configuration's program gives no body for it.
#[derive(Debug, thiserror::Error)]
#[error("legacy.response fails on this protocol: {0}")]
struct Unpresentable(#[source] RunError);

/// The protocol; hyper drops the body when it has taken all of it, and only then is the answer owed no longer.
fn completed(body: Vec<u8>, handed_out: HandedOut) -> Response {
    let length = HeaderValue::from(body.len());
    let body = Body::new(HandedOutBody { bytes: Some(body.into()), handed_out: Some(handed_out) });
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

fn of_task(mut response: Response, task: TaskId) -> Response {
    response.headers_mut().insert(TASK_ID, HeaderValue::try_from(task.to_string()).expect("a UUID is a header value"));
    response
}

/// The task itself is where the answer comes from, not the bridge.
fn by_task(mut response: Response, task: TaskId) -> Response {
    response.headers_mut().insert(ERROR_SOURCE, HeaderValue::from_static("task"));
    of_task(response, task)
}

/// A body that says when it was taken.
struct HandedOutBody {
    bytes: Option<Bytes>,
    handed_out: Option<HandedOut>,
}

impl http_body::Body for HandedOutBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl Drop for HandedOutBody {
    fn drop(&mut self) {
        // Dropped with its bytes, the connection broke first and the answer stays owed.
        if let (None, Some(handed_out)) = (&self.bytes, self.handed_out.take()) {
            handed_out.confirm();
        }
    }
}
