//! `GET /docs/migration`: how callers move from v1 to the task API; the `deprecation` link of every v1 answer leads here.

use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

/// How to move from v1 to the task API.
#[utoipa::path(get, path = "/docs/migration", tag = "health", operation_id = "migrationPage",
    responses((status = 200, description = "The page.", body = String, content_type = "text/markdown")))]
pub async fn migration_page() -> Response {
    ([(CONTENT_TYPE, "text/markdown; charset=utf-8")], include_str!("../../../docs/migration.md")).into_response()
}
