//! `GET /task/{taskId}/result`: where the protocol is, or why there is none.

use crate::{
    callers::Identity,
    domain::{
        ids::TaskId,
        task::{Status, Task},
    },
    http::{Api, Problem, RequestProblem, parameters::PathParameter, shapes::ProblemDetails, sight},
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse as _, Response},
};

/// The protocol that the task made, by redirect; or the failure as a problem.
#[utoipa::path(
    get,
    path = "/task/{taskId}/result",
    tag = "tasks",
    operation_id = "taskResult",
    params(("taskId" = Uuid, Path, description = "The task.")),
    responses(
        (status = 303, description = "Completed: the protocol is there.", headers(("Location" = String, description = "The protocol."))),
        (status = 400, description = "Not a task's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown; or failed: the source knows no such agenda.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "It goes on (not-finished), was cancelled, or failed: not ready.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "Failed: the agenda is not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "Failed inside.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 502, description = "Failed: the agenda source did not answer.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn task_result(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    PathParameter(id): PathParameter<TaskId>,
) -> Result<Response, Problem> {
    let task = sight::task(&api, &identity, id).await?;
    match (task.status, task.protocol_id) {
        (Status::Completed, Some(protocol)) => {
            let location = HeaderValue::try_from(format!("/protocol/{protocol}")).expect("a UUID in a path is a header value");
            Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
        }
        (Status::Completed, None) => {
            Err(Problem::request(RequestProblem::NotFound, "The task completed; its kind has no result.").about(id))
        }
        (Status::Failed | Status::Cancelled, _) => Err(Problem::of_task(&task)),
        (Status::Pending | Status::InProgress, _) => Err(not_finished(&task)),
    }
}

fn not_finished(task: &Task) -> Problem {
    Problem::request(RequestProblem::NotFinished, "There is no result yet; keep polling statusUrl.")
        .standing_at(task)
        .ask_again_after(super::submit::POLL_SECONDS)
}
