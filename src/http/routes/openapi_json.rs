//! `GET /openapi.json`: this API, described.

use crate::http::{Api, openapi};
use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "health", operation_id = "openapi",
    responses((status = 200, description = "The OpenAPI document.", body = Object, content_type = "application/json")))]
pub async fn openapi_json(State(api): State<Api>) -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::document_text(api.callers.is_closed())).into_response()
}
