//! `GET /api/callback-secret`: what verifies the callbacks of the caller's own tasks.

use crate::{
    callers::Identity,
    http::{
        Api, Problem,
        shapes::{CallbackSecret, ProblemDetails},
    },
};
use axum::{
    Extension, Json,
    extract::State,
    http::header::CACHE_CONTROL,
    response::{IntoResponse as _, Response},
};

/// The secret that signs what is sent to this caller's `callbackUrl`s. It is always the same, unless the operator replaces `auth.secret_key`.
#[utoipa::path(
    get,
    path = "/api/callback-secret",
    tag = "events",
    operation_id = "callbackSecret",
    responses(
        (status = 200, description = "The secret of Standard Webhooks.", body = CallbackSecret),
        (status = 422, description = "There is no key to make it from (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn callback_secret(State(api): State<Api>, Extension(identity): Extension<Identity>) -> Result<Response, Problem> {
    let caller = identity.caller.name;
    let secret = api.engine.callback_secret(&caller)?.expose();
    Ok(([(CACHE_CONTROL, "no-store")], Json(CallbackSecret { caller, secret })).into_response())
}
