//! `GET /task/{taskId}/status`: how a task stands, at once or when something changes.

use super::submit::POLL_SECONDS;
use crate::{
    base::chain::chain,
    callers::Identity,
    domain::{ids::TaskId, task::Task},
    engine::{WaitFor, Waited},
    http::{
        Api, Problem, RequestProblem,
        conditional::{IfNoneMatch, etag, if_none_match},
        parameters::PathParameter,
        prefer::{PREFERENCE_APPLIED, Prefer, applied_wait},
        shapes::{ProblemDetails, TaskStatus},
        sight,
    },
};
use axum::{
    Extension, Json,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ETAG, RETRY_AFTER},
    },
    response::{IntoResponse as _, Response},
};
use std::time::Duration;

/// The longest wait: below the 60 s at which common proxies cut a silent response.
const MAX_WAIT_SECONDS: u32 = 55;

/// How a task stands.
///
/// With `Prefer: wait=N` (at most 55) the answer comes when status or phase change, or when the time is over.
#[utoipa::path(
    get,
    path = "/task/{taskId}/status",
    tag = "tasks",
    operation_id = "taskStatus",
    params(
        ("taskId" = Uuid, Path, description = "The task."),
        ("Prefer" = Option<String>, Header, description = "wait=N: answer on a change of status or phase, at the latest after N seconds.", example = "wait=30"),
        ("If-None-Match" = Option<String>, Header, description = "An ETag from before: 304 while nothing has changed."),
    ),
    responses(
        (status = 200, description = "The task.", body = TaskStatus, headers(
            ("ETag" = String, description = "Changes with whatever a client can see."),
            ("Retry-After" = u64, description = "When to poll, in seconds, while the task has not ended."),
            ("Preference-Applied" = String, description = "The wait that was honoured."))),
        (status = 304, description = "As before."),
        (status = 400, description = "Not a task's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or older than 90 days.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn task_status(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    PathParameter(id): PathParameter<TaskId>,
    prefer: Prefer,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let since = api.clock.monotonic();
    let mut task = sight::task(&api, &identity, id).await?;
    let wait = prefer.wait_seconds.map(|seconds| seconds.min(MAX_WAIT_SECONDS));
    // A client that holds another revision learns of it at once.
    let behind = if_none_match(&headers, &tag(&task)) == IfNoneMatch::Differs;
    if let Some(seconds) = wait
        && !task.status.is_terminal()
        && !behind
    {
        let deadline = since + Duration::from_secs(u64::from(seconds));
        match api.engine.hub().wait(id, WaitFor::change_of(&task), deadline).await {
            Ok(Waited::Reached(now) | Waited::Deadline(now) | Waited::Draining(now)) => task = now,
            Ok(Waited::Unknown) => return Err(unknown()),
            // What was read before is still a true answer.
            Err(error) => {
                tracing::warn!(error = chain(&error), taskId = %id, "the last look of a long poll could not be had");
            }
        }
    }
    Ok(answer(&task, wait, &headers))
}

fn answer(task: &Task, waited: Option<u32>, asked: &HeaderMap) -> Response {
    let tag = tag(task);
    let mut response = if if_none_match(asked, &tag) == IfNoneMatch::Matches {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        Json(TaskStatus::of(task)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    if !task.status.is_terminal() {
        headers.insert(RETRY_AFTER, HeaderValue::from(POLL_SECONDS));
    }
    if let Some(seconds) = waited {
        headers.insert(PREFERENCE_APPLIED, applied_wait(u64::from(seconds)));
    }
    response
}

fn tag(task: &Task) -> HeaderValue {
    etag(&task.revision.to_string())
}

/// The 404 for a task.
#[must_use]
pub fn unknown() -> Problem {
    Problem::request(RequestProblem::NotFound, "There is no such task: unknown, or older than 90 days.")
}
