//! `GET /api/agendas`: what the source lists.

use crate::{
    domain::ids::AgendaId,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{AgendaItem, List, ProblemDetails},
    },
};
use axum::{Json, extract::State};

/// The agendas that the source can list, by id.
#[utoipa::path(
    get,
    path = "/api/agendas",
    tag = "agendas",
    operation_id = "listAgendas",
    params(
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9][A-Za-z0-9._~-]{0,127})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page; empty for a source that cannot list.", body = List<AgendaItem>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 502, description = "The source does not answer.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn agendas(State(api): State<Api>, mut query: Query) -> Result<Json<List<AgendaItem>>, Problem> {
    let (after, limit) = (query.position::<AgendaId>(), query.limit());
    query.finish()?;
    let (listed, next) = api.generator.agendas(after, limit).await.map_err(|failure| Problem::failure(&failure))?;
    Ok(Json(List { items: listed.into_iter().map(AgendaItem::from).collect(), next_cursor: next.map(|id| id.to_string()) }))
}
