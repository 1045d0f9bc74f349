//! `POST /api/subscriptions/{subscriptionId}/ping`: a test event, now.

use crate::{
    domain::ids::SubscriptionId,
    engine::arrived,
    http::{
        Api, Problem,
        door::IgnoredBody,
        parameters::PathParameter,
        shapes::{PingResult, ProblemDetails},
    },
};
use axum::{Json, extract::State};

/// Send a webhook a test event (type ObesrabuoProtocolBridgePing), signed as every other, and say how it went. It is tried once, and may be sent to one that is
/// switched off.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{subscriptionId}/ping",
    tag = "events",
    operation_id = "pingSubscription",
    params(("subscriptionId" = Uuid, Path, description = "The subscription.")),
    responses(
        (status = 200, description = "How it went.", body = PingResult),
        (status = 400, description = "Not a subscription's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "There is no key to sign with (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn ping_subscription(
    State(api): State<Api>,
    PathParameter(id): PathParameter<SubscriptionId>,
    _: IgnoredBody,
) -> Result<Json<PingResult>, Problem> {
    let tried = api.engine.ping_subscription(id).await?;
    Ok(Json(PingResult { arrived: arrived(&tried), status: tried.status }))
}
