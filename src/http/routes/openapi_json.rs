//! `GET /openapi.json`: this API, described.

use crate::http::openapi;
use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "health", operation_id = "openapi",
    responses((status = 200, description = "The OpenAPI document.", body = Object, content_type = "application/json")))]
pub async fn openapi_json() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::document_text()).into_response()
}
