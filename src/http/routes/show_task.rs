//! `GET /api/tasks/{taskId}`: a task with its timeline.

use crate::{
    domain::ids::TaskId,
    http::{
        Api, Problem,
        parameters::PathParameter,
        shapes::{ProblemDetails, TaskWithAttempts},
    },
};
use axum::{Json, extract::State};

/// A task with its attempts and finished steps.
#[utoipa::path(
    get,
    path = "/api/tasks/{taskId}",
    tag = "operation",
    operation_id = "showTask",
    params(("taskId" = Uuid, Path, description = "The task.")),
    responses(
        (status = 200, description = "The task.", body = TaskWithAttempts),
        (status = 400, description = "Not a task's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or older than 90 days.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn show_task(State(api): State<Api>, PathParameter(id): PathParameter<TaskId>) -> Result<Json<TaskWithAttempts>, Problem> {
    let task = api.within_patience(api.engine.task(id)).await?.ok_or_else(super::task_status::unknown)?;
    let attempts = api.within_patience(api.engine.attempts(id)).await?;
    let steps = api.within_patience(api.engine.steps(id)).await?;
    Ok(Json(TaskWithAttempts::of(&task, attempts, steps)))
}
