//! `POST /api/engine/pause`: claiming stops on every replica.

use crate::{
    callers::Identity,
    domain::ids::RequestId,
    http::{Api, Problem, door::IgnoredBody, shapes::EngineState},
};
use axum::{Extension, Json, extract::State};

/// Stop claiming tasks, on every replica and over restarts; what runs goes on.
#[utoipa::path(
    post,
    path = "/api/engine/pause",
    tag = "operation",
    operation_id = "pauseEngine",
    responses((status = 200, description = "Paused, now or before: then since says since when.", body = EngineState))
)]
pub async fn pause(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    _: IgnoredBody,
) -> Result<Json<EngineState>, Problem> {
    let paused = api.within_patience(api.engine.pause(&Api::author(&identity, request_id))).await?;
    Ok(Json(EngineState::from(Some(paused))))
}
