//! `GET /livez`: the process runs. Asks nobody.

/// The process runs.
#[utoipa::path(get, path = "/livez", tag = "health", operation_id = "livez",
    responses((status = 200, description = "It does.", body = String, content_type = "text/plain")))]
pub async fn livez() -> &'static str {
    "ok\n"
}
