//! `GET /protocol/{protocolId}`: a finished protocol.

use crate::{
    callers::Identity,
    domain::{ids::ProtocolId, protocol::Protocol},
    http::{
        Api, Problem, RequestProblem,
        parameters::PathParameter,
        shapes::{ProblemDetails, ProtocolResponse},
        sight,
    },
    store,
};
use axum::{Extension, Json, extract::State};

/// A finished protocol.
#[utoipa::path(
    get,
    path = "/protocol/{protocolId}",
    tag = "protocols",
    operation_id = "showProtocol",
    params(("protocolId" = Uuid, Path, description = "The protocol.")),
    responses(
        (status = 200, description = "The protocol.", body = ProtocolResponse),
        (status = 400, description = "Not a protocol's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn protocol(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    PathParameter(id): PathParameter<ProtocolId>,
) -> Result<Json<ProtocolResponse>, Problem> {
    let protocol = load(&api, &identity, id).await?;
    Ok(Json(protocol.into()))
}

/// The protocol, or the 404 for it.
///
/// # Errors
/// When there is none for this caller, or it cannot be read.
pub async fn load(api: &Api, identity: &Identity, id: ProtocolId) -> Result<Protocol, Problem> {
    let found = api.db.read("other", move |tx| Box::pin(async move { store::protocol::find(tx, id).await }));
    match api.within_patience(found).await? {
        Some(protocol) if sight::may_see(api, identity, protocol.task_id).await? => Ok(protocol),
        _ => Err(Problem::request(RequestProblem::NotFound, "There is no such protocol.")),
    }
}
