//! `GET /task/{taskId}/events`: server-sent events of one task until it has ended.

use crate::{
    callers::Identity,
    domain::{ids::TaskId, task::Task},
    engine::{WaitFor, Waited},
    http::{
        Api, Problem,
        heartbeat::beating,
        parameters::PathParameter,
        shapes::{ProblemDetails, TaskStatus},
        sight,
    },
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderName, HeaderValue, header::CACHE_CONTROL},
    response::{IntoResponse as _, Response, Sse, sse::Event},
};
use futures::stream;
use std::{convert::Infallible, time::Duration};
use utoipa::ToSchema;

/// How soon progress within a phase is told.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// One event of the stream.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: events are written as text")]
pub struct TaskEvent {
    /// `status`, `progress` or, at the end, `done`.
    #[schema(pattern = "^(status|progress|done)$")]
    event: String,
    /// The task's revision.
    id: String,
    /// The whole TaskStatus as JSON.
    data: String,
}

/// What the stream tells next.
enum Next {
    First(Task),
    ChangeAfter(Task),
    End,
}

/// A task's changes as they happen: `status`, `progress`, `done`; ids are the task's revision, each event's data is the whole TaskStatus.
#[utoipa::path(
    get,
    path = "/task/{taskId}/events",
    tag = "tasks",
    operation_id = "taskEvents",
    params(("taskId" = Uuid, Path, description = "The task.")),
    responses(
        (status = 200, description = "The stream; it ends with `done`.", body = TaskEvent, content_type = "text/event-stream"),
        (status = 400, description = "Not a task's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or older than 90 days.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn task_events(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    PathParameter(id): PathParameter<TaskId>,
) -> Result<Response, Problem> {
    let task = sight::task(&api, &identity, id).await?;
    let telling = api.clone();
    let events = stream::unfold(Next::First(task), move |next| tell(telling.clone(), next));
    let mut response = Sse::new(beating(api.clock.clone(), events)).into_response();
    // Proxies that buffer would hold events back.
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    Ok(response)
}

/// The next event, and what comes after it.
async fn tell(api: Api, next: Next) -> Option<(Result<Event, Infallible>, Next)> {
    let told = match next {
        Next::End => return None,
        Next::First(task) => return Some(event("status", task)),
        Next::ChangeAfter(task) => task,
    };
    // The client connects again and gets the rest from another instance.
    while !api.shutdown.soft().is_cancelled() {
        let deadline = api.clock.monotonic() + PROGRESS_INTERVAL;
        match api.engine.hub().wait(told.id, WaitFor::change_of(&told), deadline).await {
            Ok(Waited::Reached(task)) if task.revision != told.revision => return Some(event("status", task)),
            Ok(Waited::Deadline(task)) if task.revision != told.revision => return Some(event("progress", task)),
            Ok(Waited::Reached(_) | Waited::Deadline(_)) => {}
            Ok(Waited::Draining(_) | Waited::Unknown) => return None,
            // The database is away; the stream goes on when it is back.
            Err(_) => api.clock.sleep(PROGRESS_INTERVAL).await,
        }
    }
    None
}

fn event(name: &'static str, task: Task) -> (Result<Event, Infallible>, Next) {
    let finished = task.status.is_terminal();
    let data = serde_json::to_string(&TaskStatus::of(&task)).expect("a task's status holds only texts and numbers");
    let event = Event::default().event(if finished { "done" } else { name }).id(task.revision.to_string()).data(data);
    (Ok(event), if finished { Next::End } else { Next::ChangeAfter(task) })
}
