//! `GET /protocol?agendaId=…`: an agenda's protocols, newest version first.

use crate::{
    callers::Identity,
    domain::ids::AgendaId,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{List, ProblemDetails, ProtocolResponse},
        sight,
    },
    store,
};
use axum::{Extension, Json, extract::State};

/// An agenda's protocols, newest version first.
#[utoipa::path(
    get,
    path = "/protocol",
    tag = "protocols",
    operation_id = "listProtocolsOfAgenda",
    params(
        ("agendaId" = String, Query, description = "The agenda.", pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", example = "42"),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([0-9]{1,9})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<ProtocolResponse>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn protocols(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    mut query: Query,
) -> Result<Json<List<ProtocolResponse>>, Problem> {
    let agenda_id = query.required::<AgendaId>("agendaId");
    // Versions of one agenda are numbered without gaps from above, so the last one shown is the position.
    let (before, limit) = (query.position::<u32>(), query.limit());
    query.finish()?;
    let agenda_id = agenda_id.ok_or_else(|| Problem::invalid("missing", "/query/agendaId", "this parameter is needed"))?;
    let own = sight::limited_to(&identity).map(str::to_owned);
    let found = api.db.read("other", move |tx| {
        let (agenda_id, own) = (agenda_id.clone(), own.clone());
        Box::pin(async move {
            match own {
                Some(caller) => store::task_follower::protocols_of_agenda(tx, &agenda_id, &caller, before, limit + 1).await,
                None => store::protocol::of_agenda(tx, &agenda_id, before, limit + 1).await,
            }
        })
    });
    let mut protocols = api.within_patience(found).await?;
    let more = protocols.len() > limit;
    protocols.truncate(limit);
    let next_cursor = protocols.last().filter(|_| more).map(|last| last.version.to_string());
    Ok(Json(List { items: protocols.into_iter().map(ProtocolResponse::from).collect(), next_cursor }))
}
