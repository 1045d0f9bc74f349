//! Idempotency keys: written in the transaction of the task they stand for, kept until 7 days after its end.

use crate::{
    domain::{ids::TaskId, time::Timestamp},
    store::{IdList, Result, Sql, Tx, with_tx},
};
use uuid::Uuid;

// A key whose time is over is taken over as if it had never been used.
const BIND: Sql = Sql::same(
    "INSERT INTO idempotency_key (scope, key, fingerprint, task_id, created_us, expires_us) VALUES ($1, $2, $3, $4, $5, NULL) \
     ON CONFLICT (scope, key) DO UPDATE SET fingerprint = EXCLUDED.fingerprint, task_id = EXCLUDED.task_id, \
     created_us = EXCLUDED.created_us, expires_us = NULL \
     WHERE idempotency_key.expires_us IS NOT NULL AND idempotency_key.expires_us <= $5",
);
const FIND: Sql = Sql::same("SELECT fingerprint, task_id FROM idempotency_key WHERE scope = $1 AND key = $2");
const REBIND: Sql = Sql::same("UPDATE idempotency_key SET task_id = $4, expires_us = NULL WHERE scope = $1 AND key = $2 AND task_id = $3");
const RELEASE: Sql = Sql::same("DELETE FROM idempotency_key WHERE scope = $1 AND key = $2 AND task_id = $3");
const EXPIRE: Sql = Sql::each(
    "UPDATE idempotency_key SET expires_us = $2 WHERE task_id IN (SELECT unhex(value) FROM json_each($1))",
    "UPDATE idempotency_key SET expires_us = $2 WHERE task_id = ANY($1)",
);
const REVIVE: Sql = Sql::same("UPDATE idempotency_key SET expires_us = NULL WHERE task_id = $1");

pub const ALL: &[(&str, Sql)] = &[
    ("idempotency::bind", BIND),
    ("idempotency::find", FIND),
    ("idempotency::rebind", REBIND),
    ("idempotency::release", RELEASE),
    ("idempotency::expire", EXPIRE),
    ("idempotency::revive", REVIVE),
];

/// A key that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub fingerprint: String,
    pub task_id: TaskId,
}

/// Binds a free key to a task; `false`: it is in use. On PostgreSQL this waits for a transaction that is binding the same key.
pub async fn bind(tx: &mut Tx<'_>, scope: &str, key: &str, fingerprint: &str, task_id: TaskId, now: Timestamp) -> Result<bool> {
    let rows = with_tx!(tx, BIND, |connection, sql| sqlx::query(sql)
        .bind(scope)
        .bind(key)
        .bind(fingerprint)
        .bind(task_id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

pub async fn find(tx: &mut Tx<'_>, scope: &str, key: &str) -> Result<Option<Bound>> {
    let row: Option<(String, Uuid)> = with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, (String, Uuid)>(sql)
        .bind(scope)
        .bind(key)
        .fetch_optional(connection)
        .await)?;
    Ok(row.map(|(fingerprint, task_id)| Bound { fingerprint, task_id: TaskId(task_id) }))
}

/// Binds a key to another task than the one it stands for.
pub async fn rebind(tx: &mut Tx<'_>, scope: &str, key: &str, from: TaskId, to: TaskId) -> Result<bool> {
    let rows = with_tx!(tx, REBIND, |connection, sql| sqlx::query(sql)
        .bind(scope)
        .bind(key)
        .bind(from.0)
        .bind(to.0)
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// Frees a key that this transaction has bound to a task which is not accepted after all.
pub async fn release(tx: &mut Tx<'_>, scope: &str, key: &str, task_id: TaskId) -> Result<()> {
    with_tx!(tx, RELEASE, |connection, sql| sqlx::query(sql).bind(scope).bind(key).bind(task_id.0).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// The keys of tasks that have ended are kept until `expires_at`.
pub async fn expire(tx: &mut Tx<'_>, tasks: &[TaskId], expires_at: Timestamp) -> Result<()> {
    let tasks: IdList = tasks.iter().map(|id| id.0).collect();
    with_tx!(tx, EXPIRE, |connection, sql| sqlx::query(sql)
        .bind(tasks)
        .bind(expires_at.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// The keys of a task that is active again do not expire.
pub async fn revive(tx: &mut Tx<'_>, task_id: TaskId) -> Result<()> {
    with_tx!(tx, REVIVE, |connection, sql| sqlx::query(sql).bind(task_id.0).execute(connection).await.map(|_| ()))?;
    Ok(())
}
