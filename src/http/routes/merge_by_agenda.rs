//! `POST /api/v1/protocol/merge/byAgenda/{agendaId}`: the deprecated synchronous call. Puts the bridge's answer into HTTP.

use crate::{
    base::clock::Monotonic,
    bridge::{Answer, Call, HandedOut, Refusal, answer::Gone},
    callers::Identity,
    domain::{
        ids::{AgendaId, TaskId},
        protocol::Protocol,
    },
    http::{
        Api, Problem, RequestProblem,
        door::IgnoredBody,
        legacy_headers::{ERROR_SOURCE, PREFIX, TASK_ID},
        parameters::PathParameter,
        prefer::{PREFERENCE_APPLIED, Prefer, applied_wait},
        shapes::{ProblemDetails, ProtocolResponse, TaskStatus, task::status_url},
        trace::Trace,
    },
};
use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Uri,
        header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LINK, LOCATION},
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
        ("agendaId" = String, Path, description = "The agenda.", example = "42"),
        ("Prefer" = Option<String>, Header, description = "wait=N lowers the wait; respond-async answers 202 at once."),
        ("Cache-Control" = Option<String>, Header, description = "no-cache: take no answer that is owed from an earlier call."),
    ),
    responses(
        (status = 200, description = "The protocol.", body = ProtocolResponse, headers(("Task-Id" = String, description = "The task."))),
        (status = 202, description = "Accepted, with Prefer: respond-async.", body = TaskStatus),
        (status = 400, description = "Not an agenda's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Failed: the source knows no such agenda.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "Failed: not ready, or cancelled.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 410, description = "v1 is closed.", body = ProblemDetails, content_type = "application/problem+json"),
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
    agenda_id: Result<PathParameter<AgendaId>, Problem>,
    uri: Uri,
    prefer: Prefer,
    headers: HeaderMap,
    body: Result<IgnoredBody, Problem>,
) -> Response {
    let since = api.clock.monotonic();
    let agenda_id = match agenda_id.and_then(|PathParameter(agenda_id)| body.map(|_| agenda_id)) {
        Ok(agenda_id) => agenda_id,
        Err(problem) => {
            refused(&api, &identity, &headers, &uri, since);
            return problem.into_response();
        }
    };
    let trace = Trace::of(&headers, &api.entropy, api.clock.now());
    let call = Call {
        identity,
        agenda_id,
        wait: prefer.wait(),
        respond_async: prefer.respond_async,
        fresh: says_no_cache(&headers),
        trace_id: trace.trace_id,
        traceparent: trace.traceparent,
        since,
    };
    let answer = api.bridge.call(call).await;
    into_http(answer, prefer)
}

/// A path below v1's that is no agenda id, such as `…/../x` sent as it is: a v1 call with a bad id.
#[must_use]
pub fn not_an_agenda_id(api: &Api, request: &Request) -> Problem {
    if let Some(identity) = request.extensions().get::<Identity>() {
        refused(api, identity, request.headers(), request.uri(), api.clock.monotonic());
    }
    Problem::invalid("invalid", "/path/agendaId", crate::domain::ids::InvalidAgendaId.to_string())
}

/// A v1 call that came to nothing before it came to the bridge: it is logged and counted all the same.
pub fn refused(api: &Api, identity: &Identity, headers: &HeaderMap, uri: &Uri, since: Monotonic) {
    let trace = Trace::of(headers, &api.entropy, api.clock.now());
    api.bridge.refused_at_the_door(identity, named_in(uri), &trace.trace_id, since);
}

/// What the path names, percent signs and all, for the log only.
fn named_in(uri: &Uri) -> &str {
    let named = uri.path().strip_prefix(PREFIX).unwrap_or_default();
    &named[..named.floor_char_boundary(128)]
}

fn says_no_cache(headers: &HeaderMap) -> bool {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    directives.into_iter().any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

fn into_http(answer: Answer, prefer: Prefer) -> Response {
    match answer {
        Answer::Completed { task, protocol, handed_out } => by_task(completed(*protocol, handed_out), task),
        Answer::Failed(task) => by_task(Problem::of_task(&task).into_response(), task.id),
        Answer::StillRunning(task) => {
            let location = HeaderValue::try_from(status_url(task.id)).expect("a UUID in a path is a header value");
            let mut response = Problem::request(RequestProblem::BridgeTimeout, "The task goes on; keep polling statusUrl.")
                .standing_at(&task)
                .ask_again_after(ASK_AGAIN_SECONDS)
                .with_header(LOCATION, location)
                .into_response();
            if let Some(seconds) = prefer.wait_seconds {
                response.headers_mut().insert(PREFERENCE_APPLIED, applied_wait(u64::from(seconds)));
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
        Answer::Gone(gone) => {
            let detail = match gone {
                Gone::ForAll => "The synchronous call is gone; use POST /task.",
                Gone::Unproved => "The synchronous call is open only to callers that prove their name; use POST /task.",
            };
            let link = HeaderValue::from_static(r#"</task>; rel="successor-version", </docs/migration>; rel="deprecation""#);
            Problem::request(RequestProblem::LegacyGone, detail).replaced_by("/task").with_header(LINK, link).into_response()
        }
        Answer::Refused(refusal) => not_accepted(refusal),
    }
}

fn not_accepted(refusal: Refusal) -> Response {
    let (problem, task) = match refusal {
        Refusal::Overloaded(why) => (Problem::overloaded(why), None),
        Refusal::TooSlow(task) => (Problem::unavailable(), task),
        Refusal::Store(error, task) => (Problem::from(error), task),
    };
    match task {
        Some(task) => of_task(problem.about(task).into_response(), task),
        None => problem.into_response(),
    }
}

/// The protocol; hyper drops the body when it has taken all of it, and only then is the answer owed no longer.
fn completed(protocol: Protocol, handed_out: HandedOut) -> Response {
    let bytes = serde_json::to_vec(&ProtocolResponse::from(protocol)).expect("a protocol holds only texts and numbers");
    let length = HeaderValue::from(bytes.len());
    let body = Body::new(HandedOutBody { bytes: Some(bytes.into()), handed_out: Some(handed_out) });
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
