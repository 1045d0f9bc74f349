//! `GET /task?agendaId=…`: a caller that never saw a taskId finds its task here.

use crate::{
    callers::Identity,
    domain::{
        cursor::{Cursor, Page},
        ids::AgendaId,
        task::{Kind, Task},
    },
    engine::facade::TaskFilter,
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{List, ProblemDetails, TaskStatus},
        sight,
    },
    store::task_follower,
};
use axum::{Extension, Json, extract::State};

/// An agenda's tasks, newest first.
#[utoipa::path(
    get,
    path = "/task",
    tag = "tasks",
    operation_id = "listTasksOfAgenda",
    params(
        ("agendaId" = String, Query, description = "The agenda.", pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", example = "42"),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9_-]{32})?$"),
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
    let agenda_id = agenda_id.ok_or_else(|| Problem::invalid("missing", "/query/agendaId", "this parameter is needed"))?;
    let page = if let Some(caller) = sight::limited_to(&identity).map(str::to_owned) {
        own(&api, agenda_id, caller, cursor, limit).await?
    } else {
        let filter = TaskFilter { agenda_id: Some(agenda_id), kind: Some(Kind::Protocol), ..TaskFilter::default() };
        api.within_patience(api.engine.tasks(filter, cursor, limit)).await?
    };
    Ok(Json(List::of(page, |task| TaskStatus::of(&task))))
}

/// The page of a caller that sees its own tasks only.
async fn own(api: &Api, agenda: AgendaId, caller: String, cursor: Option<Cursor>, limit: usize) -> Result<Page<Task>, Problem> {
    let found = api.db.read("tasks", move |tx| {
        let (agenda, caller) = (agenda.clone(), caller.clone());
        Box::pin(async move { task_follower::tasks_of_agenda(tx, &agenda, &caller, cursor, limit + 1).await })
    });
    let tasks = api.within_patience(found).await?;
    Ok(Page::from_rows(tasks, limit, |task| Cursor { at: task.created_at, id: task.id.0 }))
}
