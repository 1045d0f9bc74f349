//! Finished steps, across tasks: key → output. A key is the hash of a step's inputs and of the generator's version, so an entry never becomes wrong; it only
//! becomes useless, and goes when nobody has used it for a while. What was asked of another service says itself how long it is good for.
//!
//! Writes happen in the transaction of the checkpoint, under the task's lease: on a crash a step is either done with its output or not done.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::domain::{ids::TaskId, time::Timestamp};
use std::collections::HashMap;

const PUT: Sql = Sql::same(
    "INSERT INTO step_cache (key, output, created_us, used_us) VALUES ($1, $2, $3, $3)
     ON CONFLICT (key) DO UPDATE SET output = excluded.output, used_us = excluded.used_us",
);

// A list of keys travels as one JSON text: one statement, whatever their number.
const FIND: Sql = Sql::each(
    "SELECT key, output, used_us FROM step_cache WHERE key IN (SELECT value FROM json_each($1))",
    "SELECT key, output, used_us FROM step_cache WHERE key IN (SELECT json_array_elements_text(CAST($1 AS json)))",
);

const TOUCH: Sql = Sql::each(
    "UPDATE step_cache SET used_us = $2 WHERE used_us < $2 AND key IN (SELECT value FROM json_each($1))",
    "UPDATE step_cache SET used_us = $2 WHERE used_us < $2 AND key IN (SELECT json_array_elements_text(CAST($1 AS json)))",
);

const OF_STEP: Sql = Sql::same(
    "SELECT step_cache.output FROM checkpoint JOIN step_cache ON step_cache.key = checkpoint.key
     WHERE checkpoint.task_id = $1 AND checkpoint.step = $2",
);

const PAGE: Sql = Sql::same("SELECT key, output FROM step_cache WHERE key > $1 ORDER BY key LIMIT $2");

pub const ALL: &[(&str, Sql)] = &[
    ("step_cache::PUT", PUT),
    ("step_cache::FIND", FIND),
    ("step_cache::TOUCH", TOUCH),
    ("step_cache::OF_STEP", OF_STEP),
    ("step_cache::PAGE", PAGE),
];

/// At most `limit` entries, key and output, after the key `after`.
pub async fn page(tx: &mut Tx<'_>, after: &str, limit: usize) -> Result<Vec<(String, String)>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows: Vec<(String, String)> =
        with_tx!(tx, PAGE, |connection, sql| sqlx::query_as(sql).bind(after).bind(limit).fetch_all(connection).await)?;
    Ok(rows)
}

/// How stale a last use may be before it is written again: steps are looked up far more often than they are evicted.
const TOUCH_AFTER: std::time::Duration = std::time::Duration::from_hours(1);

/// Notes a step's output under its key. The same inputs give the same output, except that what was asked of another service may have changed there: the newest
/// answer stays.
pub async fn put(tx: &mut Tx<'_>, key: &str, output: &str, now: Timestamp) -> Result<()> {
    with_tx!(tx, PUT, |connection, sql| sqlx::query(sql)
        .bind(key)
        .bind(output)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// A finished step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub output: String,
    pub used_at: Timestamp,
}

impl Found {
    /// Whether its last use is so long ago that it must be noted again, so that the janitor leaves it alone.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.since(self.used_at) > TOUCH_AFTER
    }
}

/// Those keys that are done.
pub async fn find(tx: &mut Tx<'_>, keys: &[String]) -> Result<HashMap<String, Found>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let list = json_list(keys);
    let rows: Vec<(String, String, i64)> =
        with_tx!(tx, FIND, |connection, sql| sqlx::query_as(sql).bind(&list).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(key, output, used)| (key, Found { output, used_at: Timestamp::from_micros(used) })).collect())
}

/// Notes that the keys are in use.
pub async fn touch(tx: &mut Tx<'_>, keys: &[String], now: Timestamp) -> Result<()> {
    let list = json_list(keys);
    with_tx!(tx, TOUCH, |connection, sql| sqlx::query(sql).bind(&list).bind(now.as_micros()).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// The output of the step that the task itself has finished under this name, whatever its key.
pub async fn of_step(tx: &mut Tx<'_>, task: TaskId, step: &str) -> Result<Option<String>> {
    let row: Option<(String,)> =
        with_tx!(tx, OF_STEP, |connection, sql| sqlx::query_as(sql).bind(task.0).bind(step).fetch_optional(connection).await)?;
    Ok(row.map(|(output,)| output))
}

fn json_list(keys: &[String]) -> String {
    serde_json::Value::from(keys).to_string()
}
