//! `DELETE /task/{taskId}`: cancel.

use crate::{
    callers::Identity,
    domain::ids::{RequestId, TaskId},
    engine::facade::Cancelled,
    http::{
        Api, Problem, RequestProblem,
        parameters::PathParameter,
        shapes::{ProblemDetails, TaskStatus},
    },
};
use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};

/// Cancel a task that has not ended.
#[utoipa::path(
    delete,
    path = "/task/{taskId}",
    tag = "tasks",
    operation_id = "cancelTask",
    params(("taskId" = Uuid, Path, description = "The task.")),
    responses(
        (status = 202, description = "Cancelled; its work is being stopped.", body = TaskStatus),
        (status = 200, description = "It was cancelled before.", body = TaskStatus),
        (status = 400, description = "Not a task's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or older than 90 days.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "It had completed or failed.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn cancel_task(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<TaskId>,
) -> Result<Response, Problem> {
    let cancelled = api.within_patience(api.engine.cancel(id, &Api::author(&identity, request_id))).await?;
    match cancelled {
        Cancelled::Now(task) => Ok((StatusCode::ACCEPTED, Json(TaskStatus::of(&task))).into_response()),
        Cancelled::Before(task) => Ok(Json(TaskStatus::of(&task)).into_response()),
        Cancelled::AlreadyFinished(task) => {
            let detail = format!("The task is {} already.", task.status);
            Err(Problem::request(RequestProblem::AlreadyFinished, detail).about(id))
        }
        Cancelled::Unknown => Err(super::task_status::unknown()),
    }
}
