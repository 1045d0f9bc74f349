//! `POST /api/subscriptions/{subscriptionId}/rotate-secret`: a new secret, while the old one still signs as well.

use crate::{
    callers::Identity,
    domain::ids::{RequestId, SubscriptionId},
    http::{
        Api, Problem,
        door::OptionalJsonBody,
        fields::Fields,
        parameters::PathParameter,
        shapes::{ProblemDetails, SubscriptionWithSecret},
    },
};
use axum::{Extension, Json, extract::State};
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

const DEFAULT_OVERLAP: Duration = Duration::from_hours(24);
const LONGEST_OVERLAP: u64 = 30 * 24 * 3600;

/// How to replace the secret.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "overlapSeconds": 86400 }))]
pub struct RotateRequest {
    /// For how long the old secret signs as well, at most 30 days; left out: a day. 0: it is not to be trusted any more.
    #[schema(value_type = Option<u64>, minimum = 0, maximum = 2_592_000)]
    pub overlap_seconds: Duration,
}

impl RotateRequest {
    fn read(body: Option<Value>) -> Result<Self, Problem> {
        let Some(body) = body else { return Ok(Self { overlap_seconds: DEFAULT_OVERLAP }) };
        let mut fields = Fields::of(body)?;
        let overlap = fields.optional("overlapSeconds", |value| {
            let seconds = value.as_u64().filter(|seconds| *seconds <= LONGEST_OVERLAP);
            seconds.map(Duration::from_secs).ok_or_else(|| format!("has to be a whole number from 0 to {LONGEST_OVERLAP}"))
        });
        fields.finish()?;
        Ok(Self { overlap_seconds: overlap.unwrap_or(DEFAULT_OVERLAP) })
    }
}

/// Give a webhook a new secret. Each delivery carries both signatures while they overlap, so that its receiver can change over at any moment.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{subscriptionId}/rotate-secret",
    tag = "events",
    operation_id = "rotateSecret",
    params(("subscriptionId" = Uuid, Path, description = "The subscription.")),
    request_body(content = Option<RotateRequest>, content_type = "application/json"),
    responses(
        (status = 200, description = "The new secret, shown this once.", body = SubscriptionWithSecret),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "It is written in the configuration, and changed there.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "There is no key to keep it with (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn rotate_secret(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<SubscriptionId>,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Json<SubscriptionWithSecret>, Problem> {
    let overlap = RotateRequest::read(body)?.overlap_seconds;
    let author = Api::author(&identity, request_id);
    let (subscription, secret) = api.within_patience(api.engine.rotate_secret(id, overlap, &author)).await?;
    Ok(Json(SubscriptionWithSecret { subscription: subscription.into(), secret: secret.expose() }))
}
