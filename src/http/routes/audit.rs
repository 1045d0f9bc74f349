//! `GET /api/audit`: who changed what by hand.

use crate::{
    domain::{audit::Action, time::Timestamp},
    engine::AuditFilter,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{AuditShape, List, ProblemDetails},
    },
};
use axum::{Json, extract::State};

/// What was done by hand, newest first.
#[utoipa::path(
    get,
    path = "/api/audit",
    tag = "operation",
    operation_id = "listAudit",
    params(
        ("actor" = Option<String>, Query, description = "Who did it."),
        ("action" = Option<String>, Query, description = "task.cancel, dead-letter.replay, dead-letter.dismiss, engine.pause or engine.resume."),
        ("object" = Option<String>, Query, description = "What it was done to: the id of a task or dead letter, or engine."),
        ("from" = Option<String>, Query, description = "Done at this time or later; with an offset.", format = DateTime),
        ("to" = Option<String>, Query, description = "Done before this time; with an offset.", format = DateTime),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9_-]{32})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<AuditShape>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn audit(State(api): State<Api>, mut query: Query) -> Result<Json<List<AuditShape>>, Problem> {
    let filter = AuditFilter {
        actor: query.optional("actor"),
        action: query.optional::<Action>("action"),
        object: query.optional("object"),
        from: query.optional::<Timestamp>("from"),
        to: query.optional::<Timestamp>("to"),
    };
    let (cursor, limit) = (query.cursor(), query.limit());
    query.finish()?;
    let page = api.within_patience(api.engine.audit(filter, cursor, limit)).await?;
    Ok(Json(List::of(page, AuditShape::from)))
}
