//! `GET /task?agendaId=…`: a caller that never saw a taskId finds its task here.

use crate::{
    callers::Identity,
    domain::{ids::AgendaId, task::Kind},
    engine::facade::TaskFilter,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{List, ProblemDetails, TaskStatus},
    },
};
use axum::{Extension, Json, extract::State};

/// An agenda's tasks, newest first.
#[utoipa::path(
    get,
    path = "/task",
    tag = "tasks",
    operation_id = "listTasksOfAgenda",
    params(
        ("agendaId" = String, Query, description = "The agenda.", example = "42"),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor."),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<TaskStatus>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn agenda_tasks(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    mut query: Query,
) -> Result<Json<List<TaskStatus>>, Problem> {
    let agenda_id = query.required::<AgendaId>("agendaId");
    let (cursor, limit) = (query.cursor(), query.limit());
    query.finish()?;
    let filter = TaskFilter { agenda_id, kind: Some(Kind::Protocol), ..TaskFilter::default() };
    let page = api.within_patience(api.engine.tasks(filter, cursor, limit)).await?;
    api.ledger.saw_v2(&identity);
    Ok(Json(List::of(page, |task| TaskStatus::of(&task))))
}
