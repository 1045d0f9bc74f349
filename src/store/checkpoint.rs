//! Finished steps: which steps a task has done under which key, and what each key's step produced. A step is done exactly when its key is in `step_cache`,
//! so another attempt, and another task, skip what is done.

use crate::{
    domain::{ids::TaskId, task::Phase, time::Timestamp},
    store::{Result, Sql, Tx, step_cache, with_tx},
};

const NOTE: Sql = Sql::same(
    "INSERT INTO checkpoint (task_id, step, key, done_us) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (task_id, step) DO UPDATE SET key = EXCLUDED.key, done_us = EXCLUDED.done_us",
);
const OF_TASK: Sql = Sql::same("SELECT step, key, done_us FROM checkpoint WHERE task_id = $1 ORDER BY done_us, step");
const FORGET_OUTPUTS: Sql =
    Sql::same("DELETE FROM step_cache WHERE key IN (SELECT key FROM checkpoint WHERE task_id = $1 AND (step = $2 OR step LIKE $3))");
const FORGET: Sql = Sql::same("DELETE FROM checkpoint WHERE task_id = $1 AND (step = $2 OR step LIKE $3)");

pub const ALL: &[(&str, Sql)] = &[
    ("checkpoint::note", NOTE),
    ("checkpoint::of_task", OF_TASK),
    ("checkpoint::forget_outputs", FORGET_OUTPUTS),
    ("checkpoint::forget", FORGET),
];

/// A step that a task has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub step: String,
    pub key: String,
    pub done_at: Timestamp,
}

/// Stores a finished step: for this task, and under its key for all.
pub async fn store(tx: &mut Tx<'_>, task_id: TaskId, step: &str, key: &str, output: &str, now: Timestamp) -> Result<()> {
    step_cache::put(tx, key, output, now).await?;
    with_tx!(tx, NOTE, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(step)
        .bind(key)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// A task's steps in the order in which they were done.
pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<Checkpoint>> {
    let rows: Vec<(String, String, i64)> = with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, (String, String, i64)>(sql)
        .bind(task_id.0)
        .fetch_all(connection)
        .await)?;
    Ok(rows.into_iter().map(|(step, key, done)| Checkpoint { step, key, done_at: Timestamp::from_micros(done) }).collect())
}

/// Forgets a task's steps of `phase` and the later ones, and what their keys produced: they are done again.
pub async fn forget_from(tx: &mut Tx<'_>, task_id: TaskId, phase: Phase) -> Result<()> {
    for phase in Phase::ALL.into_iter().filter(|later| *later >= phase) {
        let below = format!("{phase}/%");
        for text in [FORGET_OUTPUTS, FORGET] {
            with_tx!(&mut *tx, text, |connection, sql| sqlx::query(sql)
                .bind(task_id.0)
                .bind(phase.as_str())
                .bind(&below)
                .execute(connection)
                .await
                .map(|_| ()))?;
        }
    }
    Ok(())
}
