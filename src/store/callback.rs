//! A task's own callbacks: where its end is told to, beside the subscriptions.

use crate::{
    domain::{ids::TaskId, time::Timestamp},
    store::{IdList, Result, Sql, Tx, with_tx},
};
use uuid::Uuid;

const ADD: Sql =
    Sql::same("INSERT INTO task_callback (task_id, url, caller, created_us) VALUES ($1, $2, $3, $4) ON CONFLICT (task_id, url) DO NOTHING");
const OF_TASKS: Sql = Sql::each(
    "SELECT task_id, url FROM task_callback WHERE task_id IN (SELECT unhex(value) FROM json_each($1)) ORDER BY task_id, created_us, url",
    "SELECT task_id, url FROM task_callback WHERE task_id = ANY($1) ORDER BY task_id, created_us, url",
);
const CALLER: Sql = Sql::same("SELECT caller FROM task_callback WHERE task_id = $1 AND url = $2");

pub const ALL: &[(&str, Sql)] = &[("callback::add", ADD), ("callback::of_tasks", OF_TASKS), ("callback::caller", CALLER)];

/// Adds a callback that `caller` has named; one that is there already stays whose it was.
pub async fn add(tx: &mut Tx<'_>, task_id: TaskId, url: &str, caller: &str, now: Timestamp) -> Result<()> {
    with_tx!(tx, ADD, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(url)
        .bind(caller)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// The callbacks of tasks.
pub async fn of_tasks(tx: &mut Tx<'_>, tasks: &[TaskId]) -> Result<Vec<(TaskId, String)>> {
    let ids: IdList = tasks.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, String)> =
        with_tx!(tx, OF_TASKS, |connection, sql| sqlx::query_as::<_, (Uuid, String)>(sql).bind(ids).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(task, url)| (TaskId(task), url)).collect())
}

/// Who named this callback.
pub async fn caller(tx: &mut Tx<'_>, task_id: TaskId, url: &str) -> Result<Option<String>> {
    let row: Option<Option<String>> =
        with_tx!(tx, CALLER, |connection, sql| sqlx::query_scalar(sql).bind(task_id.0).bind(url).fetch_optional(connection).await)?;
    Ok(row.flatten())
}
