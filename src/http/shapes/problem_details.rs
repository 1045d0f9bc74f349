//! Problem details as the OpenAPI document describes them; [`crate::http::problem`] writes them.

use utoipa::ToSchema;
use uuid::Uuid;

/// RFC 9457. `type` is relative and a page of this service.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({
    "type": "/problems/invalid-request", "title": "The request is not valid", "status": 400, "detail": "/agendaId: this field is needed",
    "errors": [{ "code": "missing", "pointer": "/agendaId", "detail": "this field is needed" }], "instance": "/requests/0198c0de-7a3e-7c11-9d2b-3f5a60718293"
}))]
pub struct ProblemDetails {
    /// The task that it is about.
    pub task_id: Option<Uuid>,
    pub status_url: Option<String>,
    #[schema(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    pub phase: Option<String>,
    pub attempt: Option<u32>,
    /// The limit that was passed.
    pub limit_bytes: Option<u64>,
    /// Everything that is wrong, at once.
    pub errors: Option<Vec<FaultShape>>,
    /// What to use instead.
    pub successor: Option<String>,
    pub retry_after_seconds: Option<u64>,
    /// The request, as in `X-Request-Id` and in the log.
    pub instance: String,
}

/// One thing that is wrong.
#[derive(Debug, ToSchema)]
pub struct FaultShape {
    pub code: String,
    /// JSON Pointer into the body or agenda; `/path/…`, `/query/…`, `/header/…` for what stands there.
    pub pointer: String,
    pub detail: String,
}
