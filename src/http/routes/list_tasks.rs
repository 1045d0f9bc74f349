//! `GET /api/tasks`: every task, filtered, newest first.

use crate::{
    domain::{
        caller::Caller,
        ids::AgendaId,
        task::{Kind, Status},
        time::Timestamp,
    },
    engine::facade::TaskFilter,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{List, ProblemDetails, TaskStatus},
    },
};
use axum::{Json, extract::State};

/// Tasks, newest first.
#[utoipa::path(
    get,
    path = "/api/tasks",
    tag = "operation",
    operation_id = "listTasks",
    params(
        ("status" = Option<String>, Query, description = "How they stand.", pattern = "^(PENDING|IN_PROGRESS|COMPLETED|FAILED|CANCELLED)?$"),
        ("kind" = Option<String>, Query, description = "What they do.", pattern = "^(protocol|demo)?$"),
        ("agendaId" = Option<String>, Query, description = "The agenda.", pattern = "^([A-Za-z0-9][A-Za-z0-9._~-]{0,127})?$"),
        ("caller" = Option<String>, Query, description = "Who submitted."),
        ("from" = Option<String>, Query, description = "Created at this time or later; with an offset.", format = DateTime),
        ("to" = Option<String>, Query, description = "Created before this time; with an offset.", format = DateTime),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9_-]{32})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<TaskStatus>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn list_tasks(State(api): State<Api>, mut query: Query) -> Result<Json<List<TaskStatus>>, Problem> {
    let filter = TaskFilter {
        status: query.optional::<Status>("status"),
        kind: query.optional::<Kind>("kind"),
        agenda_id: query.optional::<AgendaId>("agendaId"),
        // Names are kept as claimed, so they are looked for as claimed.
        caller: query.optional::<String>("caller").map(|name| Caller::claimed(&name).name),
        from: query.optional::<Timestamp>("from"),
        to: query.optional::<Timestamp>("to"),
    };
    let (cursor, limit) = (query.cursor(), query.limit());
    query.finish()?;
    let page = api.within_patience(api.engine.tasks(filter, cursor, limit)).await?;
    Ok(Json(List::of(page, |task| TaskStatus::of(&task))))
}
