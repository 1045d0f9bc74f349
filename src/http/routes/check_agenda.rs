//! `GET /api/agendas/{agendaId}/check`: COLLECT and CHECK without a task.

use crate::{
    domain::ids::AgendaId,
    http::{
        Api, Problem, accept_language,
        parameters::PathParameter,
        shapes::{AgendaCheck, ProblemDetails},
    },
};
use axum::{Json, extract::State, http::HeaderMap};

/// Everything that is wrong with an agenda, at once and without a task.
#[utoipa::path(
    get,
    path = "/api/agendas/{agendaId}/check",
    tag = "agendas",
    operation_id = "checkAgenda",
    params(
        ("agendaId" = String, Path, description = "The agenda.", pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", example = "42"),
        ("Accept-Language" = Option<String>, Header, description = "The language of the words: ru, en or de; else the agenda's.", example = "ru"),
    ),
    responses(
        (status = 200, description = "What was found.", body = AgendaCheck),
        (status = 400, description = "Not an agenda's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "The source knows no such agenda.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The agenda cannot be read.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 502, description = "The source does not answer.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn check_agenda(
    State(api): State<Api>,
    PathParameter(id): PathParameter<AgendaId>,
    headers: HeaderMap,
) -> Result<Json<AgendaCheck>, Problem> {
    api.generator
        .check(&id, accept_language::asked(&headers))
        .await
        .map(|report| Json(report.into()))
        .map_err(|failure| Problem::failure(&failure))
}
