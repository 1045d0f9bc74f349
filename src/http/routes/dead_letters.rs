//! `GET /api/dead-letters`: tasks that failed for good.

use crate::{
    domain::{
        failure::FailureCode,
        ids::{AgendaId, TaskId},
        time::Timestamp,
    },
    engine::facade::DeadLetterFilter,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{DeadLetterShape, List, ProblemDetails},
    },
};
use axum::{Json, extract::State};
use std::str::FromStr;

/// Dead letters, newest first.
#[utoipa::path(
    get,
    path = "/api/dead-letters",
    tag = "operation",
    operation_id = "listDeadLetters",
    params(
        ("reason" = Option<String>, Query, description = "A code of the failure catalogue."),
        ("agendaId" = Option<String>, Query, description = "The agenda.", pattern = "^([A-Za-z0-9][A-Za-z0-9._~-]{0,127})?$"),
        ("taskId" = Option<String>, Query, description = "The task.", pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$"),
        ("open" = Option<bool>, Query, description = "true: only those that were neither replayed nor dismissed."),
        ("from" = Option<String>, Query, description = "Failed at this time or later; with an offset.", format = DateTime),
        ("to" = Option<String>, Query, description = "Failed before this time; with an offset.", format = DateTime),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9_-]{32})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<DeadLetterShape>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn dead_letters(State(api): State<Api>, mut query: Query) -> Result<Json<List<DeadLetterShape>>, Problem> {
    let filter = DeadLetterFilter {
        reason: query.optional::<Reason>("reason").map(|reason| reason.0),
        agenda_id: query.optional::<AgendaId>("agendaId"),
        task_id: query.optional::<TaskId>("taskId"),
        open_only: query.optional::<bool>("open").unwrap_or(false),
        from: query.optional::<Timestamp>("from"),
        to: query.optional::<Timestamp>("to"),
    };
    let (cursor, limit) = (query.cursor(), query.limit());
    query.finish()?;
    let page = api.within_patience(api.engine.dead_letters(filter, cursor, limit)).await?;
    Ok(Json(List::of(page, DeadLetterShape::from)))
}

/// A failure code as a query or a body gives it.
#[derive(Debug)]
pub struct Reason(pub FailureCode);

impl FromStr for Reason {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        FailureCode::ALL.into_iter().find(|code| code.as_str() == text).map(Self).ok_or("is no code of the failure catalogue")
    }
}
