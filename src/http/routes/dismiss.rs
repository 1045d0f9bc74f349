//! `POST /api/dead-letters/{deadLetterId}/dismiss`: nothing more is to be done about it.

use crate::{
    callers::Identity,
    domain::ids::{DeadLetterId, RequestId},
    engine::Dismissed,
    http::{
        Api, Problem, RequestProblem,
        door::IgnoredBody,
        parameters::PathParameter,
        shapes::{DeadLetterShape, ProblemDetails},
    },
};
use axum::{Extension, Json, extract::State};

/// Close a dead letter without a replay; its task stays FAILED.
#[utoipa::path(
    post,
    path = "/api/dead-letters/{deadLetterId}/dismiss",
    tag = "operation",
    operation_id = "dismissDeadLetter",
    params(("deadLetterId" = Uuid, Path, description = "The dead letter (not the task).")),
    responses(
        (status = 200, description = "Closed, now or before. It may still be replayed by its id.", body = DeadLetterShape),
        (status = 400, description = "Not an id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "Replayed before (already-replayed).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn dismiss(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<DeadLetterId>,
    _: IgnoredBody,
) -> Result<Json<DeadLetterShape>, Problem> {
    match api.within_patience(api.engine.dismiss(id, &Api::author(&identity, request_id))).await? {
        Dismissed::Closed(letter) => Ok(Json(DeadLetterShape::from(*letter))),
        Dismissed::AlreadyReplayed => Err(Problem::request(RequestProblem::AlreadyReplayed, "This dead letter was replayed before.")),
        Dismissed::Unknown => Err(Problem::request(RequestProblem::NotFound, "There is no such dead letter.")),
    }
}
