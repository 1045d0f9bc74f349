//! `POST /api/engine/resume`: claiming goes on.

use crate::{
    callers::Identity,
    domain::ids::RequestId,
    http::{Api, Problem, door::IgnoredBody, shapes::EngineState},
};
use axum::{Extension, Json, extract::State};

/// Go on claiming tasks, on every replica.
#[utoipa::path(
    post,
    path = "/api/engine/resume",
    tag = "operation",
    operation_id = "resumeEngine",
    responses((status = 200, description = "It goes on; other replicas notice within two seconds.", body = EngineState))
)]
pub async fn resume(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    _: IgnoredBody,
) -> Result<Json<EngineState>, Problem> {
    api.within_patience(api.engine.resume(&Api::author(&identity, request_id))).await?;
    Ok(Json(EngineState::from(None)))
}
