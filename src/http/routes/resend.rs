//! `POST /api/deliveries/{deliveryId}/resend`: tell one event to one sink again.

use crate::{
    callers::Identity,
    domain::ids::{DeliveryId, RequestId},
    http::{
        Api, Problem, RequestProblem,
        door::IgnoredBody,
        parameters::PathParameter,
        shapes::{DeliveryShape, ProblemDetails},
    },
};
use axum::{Extension, Json, extract::State, http::StatusCode};

/// Begin a delivery anew, at once and with the whole schedule before it, whether it was given up or delivered. The event keeps its id.
#[utoipa::path(
    post,
    path = "/api/deliveries/{deliveryId}/resend",
    tag = "events",
    operation_id = "resendDelivery",
    params(("deliveryId" = Uuid, Path, description = "The delivery.")),
    responses(
        (status = 202, description = "Begun.", body = DeliveryShape),
        (status = 400, description = "Not a delivery's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or its event is older than 30 days.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn resend(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<DeliveryId>,
    _: IgnoredBody,
) -> Result<(StatusCode, Json<DeliveryShape>), Problem> {
    let found = api.within_patience(api.engine.resend(id, &Api::author(&identity, request_id))).await?;
    let delivery = found.ok_or_else(|| Problem::request(RequestProblem::NotFound, "There is no such delivery."))?;
    Ok((StatusCode::ACCEPTED, Json(delivery.into())))
}
