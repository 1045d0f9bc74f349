//! A task's own callbacks: where its end is told to, beside the subscriptions.

use crate::{
    domain::{ids::TaskId, time::Timestamp},
    store::{Result, Sql, Tx, with_tx},
};

const ADD: Sql =
    Sql::same("INSERT INTO task_callback (task_id, url, created_us) VALUES ($1, $2, $3) ON CONFLICT (task_id, url) DO NOTHING");
const OF_TASK: Sql = Sql::same("SELECT url FROM task_callback WHERE task_id = $1 ORDER BY created_us, url");

pub const ALL: &[(&str, Sql)] = &[("callback::add", ADD), ("callback::of_task", OF_TASK)];

/// Adds a callback; one that is there already stays.
pub async fn add(tx: &mut Tx<'_>, task_id: TaskId, url: &str, now: Timestamp) -> Result<()> {
    with_tx!(tx, ADD, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(url)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<String>> {
    let rows: Vec<(String,)> =
        with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, (String,)>(sql).bind(task_id.0).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(url,)| url).collect())
}
