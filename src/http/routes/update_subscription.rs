//! `PATCH /api/subscriptions/{subscriptionId}`: change a webhook's address or types, or switch it off and on.

use super::{create_subscription::types, submit::callback_url};
use crate::{
    callers::Identity,
    domain::{
        event::EventType,
        ids::{RequestId, SubscriptionId},
    },
    engine::Change,
    http::{
        Api, Problem,
        door::JsonBody,
        fields::{Fields, kind_of, string},
        parameters::PathParameter,
        shapes::{ProblemDetails, SubscriptionShape},
    },
};
use axum::{Extension, Json, extract::State};
use serde_json::Value;
use utoipa::ToSchema;

/// What is to be different; what is left out stays.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "enabled": true }))]
pub struct SubscriptionPatch {
    /// Looked at as at the beginning.
    #[schema(format = "uri", max_length = 2048, pattern = "^https?://[!-~]+$")]
    pub url: Option<String>,
    /// Empty: all.
    #[schema(value_type = Option<Vec<String>>, max_items = 3)]
    pub types: Option<Vec<EventType>>,
    /// true after a 410: it is told again, from the next event on.
    pub enabled: Option<bool>,
}

fn read(body: Value) -> Result<Change, Problem> {
    let mut fields = Fields::of(body)?;
    let url = fields.optional("url", |value| callback_url(string(value)?));
    let types = fields.optional("types", types);
    let enabled =
        fields.optional("enabled", |value| value.as_bool().ok_or_else(|| format!("has to be true or false, not {}", kind_of(&value))));
    fields.finish()?;
    Ok(Change { url, types, enabled })
}

/// Change a webhook that was made here.
#[utoipa::path(
    patch,
    path = "/api/subscriptions/{subscriptionId}",
    tag = "events",
    operation_id = "updateSubscription",
    params(("subscriptionId" = Uuid, Path, description = "The subscription.")),
    request_body(content = SubscriptionPatch, content_type = "application/json"),
    responses(
        (status = 200, description = "As it is now.", body = SubscriptionShape),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 403, description = "It is written in the configuration, and changed there.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "Too large.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "An address that is not told anything (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn update_subscription(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<SubscriptionId>,
    JsonBody(body): JsonBody,
) -> Result<Json<SubscriptionShape>, Problem> {
    let change = read(body)?;
    let changed = api.within_patience(api.engine.update_subscription(id, change, &Api::author(&identity, request_id))).await?;
    Ok(Json(changed.into()))
}
