//! `POST /api/subscriptions`: have a webhook told about events.

use super::submit::callback_url;
use crate::{
    callers::Identity,
    domain::{event::EventType, ids::RequestId},
    engine::SubscriptionError,
    http::{
        Api, Problem, RequestProblem,
        door::JsonBody,
        fields::{Fields, kind_of, string},
        shapes::{ProblemDetails, SubscriptionWithSecret},
    },
};
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;
use utoipa::ToSchema;

/// Who is to be told, and about what.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "url": "https://agenda.example.org/hooks/protocols", "types": ["ObesrabuoProtocolGenerationCompleted"] }))]
pub struct SubscriptionRequest {
    /// An https address; http and private addresses only where `events.allow_private_targets` says so.
    #[schema(format = "uri", max_length = 2048, pattern = "^https?://[!-~]+$")]
    pub url: String,
    /// Left out or empty: all.
    #[schema(value_type = Option<Vec<String>>, max_items = 3)]
    pub types: Vec<EventType>,
}

impl SubscriptionRequest {
    fn read(body: Value) -> Result<Self, Problem> {
        let mut fields = Fields::of(body)?;
        let url = fields.required("url", |value| callback_url(string(value)?));
        let types = fields.optional("types", types).unwrap_or_default();
        fields.finish()?;
        let url = url.ok_or_else(|| Problem::invalid("missing", "/url", "this field is needed"))?;
        Ok(Self { url, types })
    }
}

impl From<SubscriptionError> for Problem {
    fn from(error: SubscriptionError) -> Self {
        match error {
            SubscriptionError::NoKey | SubscriptionError::Refused(_) => {
                Self::request(RequestProblem::TargetRefused, format!("{}.", capitalised(&error.to_string())))
            }
            SubscriptionError::Unknown => Self::request(RequestProblem::NotFound, "There is no such subscription."),
            SubscriptionError::Configured(_) => Self::request(RequestProblem::Forbidden, format!("{}.", capitalised(&error.to_string()))),
            SubscriptionError::Store(error) => error.into(),
        }
    }
}

/// A sentence begins so.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Reads a list of event types.
///
/// # Errors
/// What is not one.
pub(super) fn types(value: Value) -> Result<Vec<EventType>, String> {
    let Value::Array(items) = value else { return Err(format!("has to be an array, not {}", kind_of(&value))) };
    let mut types = items.into_iter().map(crate::http::fields::parsed).collect::<Result<Vec<EventType>, _>>()?;
    types.sort_unstable();
    types.dedup();
    Ok(types)
}

/// Have a webhook told about events that happen from now on. The answer holds the secret that verifies them, this once.
#[utoipa::path(
    post,
    path = "/api/subscriptions",
    tag = "events",
    operation_id = "createSubscription",
    request_body(content = SubscriptionRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "Made.", body = SubscriptionWithSecret, headers(("Location" = String, description = "The subscription."))),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "Too large.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "An address that is not told anything (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn create_subscription(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let request = SubscriptionRequest::read(body)?;
    let author = Api::author(&identity, request_id);
    let (made, secret) = api.within_patience(api.engine.subscribe(request.url, request.types, &author)).await?;
    let location = HeaderValue::try_from(format!("/api/subscriptions/{}", made.id)).expect("a UUID in a path is a header value");
    let body = SubscriptionWithSecret { subscription: made.into(), secret: secret.expose() };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(body)).into_response())
}
