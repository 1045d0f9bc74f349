//! `POST /api/deliveries/resend`: tell everything again that was given up.

use crate::{
    callers::Identity,
    domain::{
        delivery::Sink,
        ids::{RequestId, SubscriptionId},
    },
    http::{
        Api, Problem,
        door::JsonBody,
        fields::{Fields, kind_of, parsed},
        shapes::{ProblemDetails, Resent},
    },
};
use axum::{Extension, Json, extract::State};
use serde_json::Value;
use utoipa::ToSchema;

/// Which deliveries: those of one webhook, or all.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "subscriptionId": "0198c0e2-0000-7000-8000-000000000001" }))]
pub struct ResendRequest {
    /// Only what was given up for this webhook.
    #[schema(value_type = Option<Uuid>)]
    pub subscription_id: Option<SubscriptionId>,
    /// true: everything that was given up.
    pub all: Option<bool>,
}

fn read(body: Value) -> Result<Option<Sink>, Problem> {
    let mut fields = Fields::of(body)?;
    let subscription = fields.optional("subscriptionId", parsed::<SubscriptionId>);
    let all = fields.optional("all", |value| value.as_bool().ok_or_else(|| format!("has to be true or false, not {}", kind_of(&value))));
    if subscription.is_none() && all != Some(true) {
        fields.refuse("subscriptionId", "missing", "name a subscription, or write all: true");
    }
    if subscription.is_some() && all == Some(true) {
        fields.refuse("all", "invalid", "name a subscription or write all: true, not both");
    }
    fields.finish()?;
    Ok(subscription.map(Sink::Subscription))
}

/// Begin every delivery anew that was given up, of one webhook or of all sinks.
#[utoipa::path(
    post,
    path = "/api/deliveries/resend",
    tag = "events",
    operation_id = "resendFailedDeliveries",
    request_body(content = ResendRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "How many.", body = Resent),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "Too large.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn resend_failed(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    JsonBody(body): JsonBody,
) -> Result<Json<Resent>, Problem> {
    let sink = read(body)?;
    let resent = api.within_patience(api.engine.resend_failed(sink, &Api::author(&identity, request_id))).await?;
    Ok(Json(Resent { resent }))
}
