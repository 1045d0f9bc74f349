//! `DELETE /api/subscriptions/{subscriptionId}`: a webhook is told nothing more.

use crate::{
    callers::Identity,
    domain::ids::{RequestId, SubscriptionId},
    http::{Api, Problem, parameters::PathParameter, shapes::ProblemDetails},
};
use axum::{Extension, extract::State, http::StatusCode};

/// Remove a webhook that was made here, and its deliveries with it.
#[utoipa::path(
    delete,
    path = "/api/subscriptions/{subscriptionId}",
    tag = "events",
    operation_id = "deleteSubscription",
    params(("subscriptionId" = Uuid, Path, description = "The subscription.")),
    responses(
        (status = 204, description = "Gone."),
        (status = 400, description = "Not a subscription's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "It is written in the configuration, and removed there.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn delete_subscription(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<SubscriptionId>,
) -> Result<StatusCode, Problem> {
    api.within_patience(api.engine.unsubscribe(id, &Api::author(&identity, request_id))).await?;
    Ok(StatusCode::NO_CONTENT)
}
