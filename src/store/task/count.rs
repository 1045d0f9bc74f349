//! Counts for gauges and for `engine.max_pending`. Active tasks are few and indexed; finished ones are counted seldom.

use crate::{
    domain::{task::Status, time::Timestamp},
    store::{Result, Sql, Tx, field::Fields, with_tx},
};

// Over the index that holds the times; SQLite would read each row for them.
const PENDING: Sql = Sql::each(
    "SELECT COUNT(*), MIN(next_attempt_us) FROM task INDEXED BY task_due WHERE status = 'PENDING'",
    "SELECT COUNT(*), MIN(next_attempt_us) FROM task WHERE status = 'PENDING'",
);
const IN_PROGRESS: Sql = Sql::same("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'");
// Without the lock two submissions that count at once would both be the last one allowed. SQLite has one writer anyway.
const LOCK_EDGE: Sql = Sql::each("SELECT 0", "SELECT pg_advisory_xact_lock(7236827345001)");
const PENDING_REACHES: Sql = Sql::same("SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE status = 'PENDING' LIMIT $1) AS bounded");
const FINISHED: Sql = Sql::same("SELECT status, COUNT(*) FROM task WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY status");

pub const ALL: &[(&str, Sql)] = &[
    ("task::active pending", PENDING),
    ("task::active in progress", IN_PROGRESS),
    ("task::lock_edge", LOCK_EDGE),
    ("task::pending_reaches", PENDING_REACHES),
    ("task::finished", FINISHED),
];

/// Active tasks, and since when the longest due one is due.
#[derive(Debug, Clone, Copy, Default)]
pub struct Active {
    pub pending: u64,
    pub in_progress: u64,
    pub earliest_due: Option<Timestamp>,
}

pub async fn active(tx: &mut Tx<'_>) -> Result<Active> {
    let (pending, earliest): (i64, Option<i64>) =
        with_tx!(tx, PENDING, |connection, sql| sqlx::query_as::<_, (i64, Option<i64>)>(sql).fetch_one(connection).await)?;
    let (in_progress,): (i64,) = with_tx!(tx, IN_PROGRESS, |connection, sql| sqlx::query_as::<_, (i64,)>(sql).fetch_one(connection).await)?;
    let count = |count| u64::try_from(count).unwrap_or(0);
    Ok(Active { pending: count(pending), in_progress: count(in_progress), earliest_due: earliest.map(Timestamp::from_micros) })
}

/// Whether at least `limit` tasks are PENDING; looks at no more than that many. Until the transaction ends nobody else who asks gets an answer.
pub async fn pending_reaches(tx: &mut Tx<'_>, limit: u64) -> Result<bool> {
    with_tx!(tx, LOCK_EDGE, |connection, sql| sqlx::query(sql).execute(connection).await.map(|_| ()))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (found,): (i64,) =
        with_tx!(tx, PENDING_REACHES, |connection, sql| sqlx::query_as::<_, (i64,)>(sql).bind(limit).fetch_one(connection).await)?;
    Ok(found >= limit)
}

/// How many tasks ended how. Reads the whole index of finished rows: not more than once a minute.
pub async fn finished(tx: &mut Tx<'_>) -> Result<Vec<(Status, u64)>> {
    let rows: Vec<(String, i64)> =
        with_tx!(tx, FINISHED, |connection, sql| sqlx::query_as::<_, (String, i64)>(sql).fetch_all(connection).await)?;
    let fields = Fields { table: "task", row: "a group" };
    rows.into_iter().map(|(status, count)| Ok((fields.fit("status", status.parse())?, u64::try_from(count).unwrap_or(0)))).collect()
}
