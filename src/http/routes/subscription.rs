//! `GET /api/subscriptions/{subscriptionId}`: one webhook.

use crate::{
    domain::ids::SubscriptionId,
    engine::SubscriptionError,
    http::{
        Api, Problem,
        parameters::PathParameter,
        shapes::{ProblemDetails, SubscriptionShape},
    },
};
use axum::{Json, extract::State};

/// One webhook.
#[utoipa::path(
    get,
    path = "/api/subscriptions/{subscriptionId}",
    tag = "events",
    operation_id = "subscription",
    params(("subscriptionId" = Uuid, Path, description = "The subscription.")),
    responses(
        (status = 200, description = "The webhook, without its secret.", body = SubscriptionShape),
        (status = 400, description = "Not a subscription's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn subscription(
    State(api): State<Api>,
    PathParameter(id): PathParameter<SubscriptionId>,
) -> Result<Json<SubscriptionShape>, Problem> {
    let found = api.within_patience(api.engine.subscriptions()).await?.into_iter().find(|one| one.id == id);
    Ok(Json(found.ok_or(SubscriptionError::Unknown)?.into()))
}
