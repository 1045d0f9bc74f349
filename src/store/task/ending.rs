//! How a claim ends: for good, by going back into the queue, or by a cancel; and the way back by a replay. All guarded, all tell what came of it.

use super::row::{TaskRow, columns};
use crate::{
    domain::{
        failure::Failure,
        ids::{LeaseToken, ProtocolId, TaskId},
        task::{Phase, Progress, Status, Task},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, rows, with_tx},
};
use serde::Serialize;

const PROGRESS: Sql = Sql::same(
    "UPDATE task SET phase = $3, steps_done = $4, steps_known = $5, revision = revision + 1 \
     WHERE id = $1 AND lease_token = $2 AND status = 'IN_PROGRESS'",
);
// The plus, and on PostgreSQL `|| ''`, keep the database from walking through everything that is IN_PROGRESS, or has been of late, for a few ends. Locked in the
// order of ids on PostgreSQL: who renews or claims many takes them in that order, too, and nobody deadlocks.
const END: Sql = Sql::each(
    concat!(
        "UPDATE task SET status = ended.value ->> 'became', lease_token = NULL, lease_until_us = NULL, worker_id = NULL, \
         last_error = ended.value ->> 'message', failure = ended.value ->> 'failed', phase = COALESCE(ended.value ->> 'reached', phase), \
         steps_done = COALESCE(ended.value ->> 'done', steps_done), steps_known = COALESCE(ended.value ->> 'known', steps_known), \
         finished_us = ended.value ->> 'at', revision = revision + 1 FROM json_each($1) AS ended \
         WHERE task.id = unhex(ended.value ->> 'task') AND task.lease_token = unhex(ended.value ->> 'token') AND +status = 'IN_PROGRESS' \
         RETURNING ",
        columns!()
    ),
    concat!(
        "UPDATE task SET status = ended.became, lease_token = NULL, lease_until_us = NULL, worker_id = NULL, last_error = ended.message, \
         failure = ended.failed, phase = COALESCE(ended.reached, task.phase), steps_done = COALESCE(ended.done, task.steps_done), \
         steps_known = COALESCE(ended.known, task.steps_known), finished_us = ended.at, revision = revision + 1 \
         FROM (SELECT rows.* FROM json_to_recordset(CAST($1 AS json)) \
           AS rows (task uuid, token uuid, became text, message text, failed text, reached text, done bigint, known bigint, at bigint) \
           JOIN task AS held ON held.id = rows.task AND held.lease_token = rows.token AND held.status || '' = 'IN_PROGRESS' \
           ORDER BY held.id FOR UPDATE OF held) AS ended \
         WHERE task.id = ended.task AND task.lease_token = ended.token AND task.status || '' = 'IN_PROGRESS' RETURNING ",
        columns!()
    ),
);
const SET_PROTOCOL: Sql = Sql::same("UPDATE task SET protocol_id = $2 WHERE id = $1 AND status = 'COMPLETED'");
const PUT_BACK: Sql = Sql::same(concat!(
    "UPDATE task SET status = 'PENDING', lease_token = NULL, lease_until_us = NULL, worker_id = NULL, attempt_no = attempt_no - $3, \
     next_attempt_us = $4, last_error = COALESCE($5, last_error), failure = COALESCE($6, failure), phase = COALESCE($7, phase), \
     steps_done = COALESCE($8, steps_done), steps_known = COALESCE($9, steps_known), revision = revision + 1 \
     WHERE id = $1 AND lease_token = $2 AND status = 'IN_PROGRESS' RETURNING ",
    columns!()
));
const CANCEL: Sql = Sql::same(concat!(
    "UPDATE task SET status = 'CANCELLED', lease_token = NULL, lease_until_us = NULL, worker_id = NULL, last_error = $2, failure = $3, \
     finished_us = $4, revision = revision + 1 \
     WHERE id = $1 AND status IN ('PENDING', 'IN_PROGRESS') RETURNING ",
    columns!()
));
const REPLAY: Sql = Sql::same(concat!(
    "UPDATE task SET status = 'PENDING', attempt_no = 0, next_attempt_us = $2, finished_us = NULL, revision = revision + 1 \
     WHERE id = $1 AND status = 'FAILED' RETURNING ",
    columns!()
));

pub const ALL: &[(&str, Sql)] = &[
    ("task::progress", PROGRESS),
    ("task::end", END),
    ("task::set_protocol", SET_PROTOCOL),
    ("task::put_back", PUT_BACK),
    ("task::cancel", CANCEL),
    ("task::replay", REPLAY),
];

/// A terminal status for the task that is held under `token`, and why.
#[derive(Debug, Clone)]
pub struct Ending {
    pub id: TaskId,
    pub token: LeaseToken,
    pub status: Status,
    /// None for a completed task.
    pub failure: Option<Failure>,
    /// How far the attempt came, if it said so.
    pub reached: Option<(Phase, Progress)>,
    pub at: Timestamp,
}

/// Back into the queue.
#[derive(Debug, Clone)]
pub struct PutBack {
    /// The attempt does not count.
    pub give_back_attempt: bool,
    pub next_attempt_at: Timestamp,
    /// Why; `None` keeps what an earlier attempt left.
    pub failure: Option<Failure>,
    pub reached: Option<(Phase, Progress)>,
}

fn stored(failure: Option<&Failure>) -> (Option<&str>, Option<String>) {
    let json = failure.map(|failure| serde_json::to_string(failure).expect("a failure holds only strings"));
    (failure.map(|failure| failure.message.as_str()), json)
}

fn reached_columns(reached: Option<(Phase, Progress)>) -> (Option<&'static str>, Option<i64>, Option<i64>) {
    match reached {
        Some((phase, progress)) => (Some(phase.as_str()), Some(i64::from(progress.done)), Some(i64::from(progress.known))),
        None => (None, None, None),
    }
}

/// Whether the lease still holds; if not, nothing was written.
pub async fn progress(tx: &mut Tx<'_>, id: TaskId, token: LeaseToken, phase: Phase, progress: Progress) -> Result<bool> {
    let rows = with_tx!(tx, PROGRESS, |connection, sql| sqlx::query(sql)
        .bind(id.0)
        .bind(token.0)
        .bind(phase.as_str())
        .bind(i64::from(progress.done))
        .bind(i64::from(progress.known))
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// Ends tasks; answers those that were still held under their tokens, in no order. Of the others nothing was written.
pub async fn end(tx: &mut Tx<'_>, endings: &[Ending]) -> Result<Vec<Task>> {
    #[derive(Serialize)]
    struct Row<'a> {
        task: String,
        token: String,
        became: &'static str,
        message: Option<&'a str>,
        failed: Option<String>,
        reached: Option<&'static str>,
        done: Option<i64>,
        known: Option<i64>,
        at: i64,
    }
    fn row(ending: &Ending) -> Row<'_> {
        let (message, failed) = stored(ending.failure.as_ref());
        let (reached, done, known) = reached_columns(ending.reached);
        let (task, token) = (rows::hex(ending.id.0), rows::hex(ending.token.0));
        Row { task, token, became: ending.status.as_str(), message, failed, reached, done, known, at: ending.at.as_micros() }
    }
    let list: Vec<Row<'_>> = endings.iter().map(row).collect();
    with_tx!(tx, END, |connection, sql| sqlx::query_as::<_, TaskRow>(sql).bind(rows::json(&list)).fetch_all(connection).await)?
        .into_iter()
        .map(Task::try_from)
        .collect()
}

/// Notes the protocol that a task made, in the transaction that completed it.
pub async fn set_protocol(tx: &mut Tx<'_>, id: TaskId, protocol_id: ProtocolId) -> Result<()> {
    with_tx!(tx, SET_PROTOCOL, |connection, sql| sqlx::query(sql).bind(id.0).bind(protocol_id.0).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Puts a task that is held under `token` back into the queue; `None`: it is not.
pub async fn put_back(tx: &mut Tx<'_>, id: TaskId, token: LeaseToken, put_back: &PutBack) -> Result<Option<Task>> {
    let (last_error, failure) = stored(put_back.failure.as_ref());
    let (phase, done, known) = reached_columns(put_back.reached);
    with_tx!(tx, PUT_BACK, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(id.0)
        .bind(token.0)
        .bind(i64::from(put_back.give_back_attempt))
        .bind(put_back.next_attempt_at.as_micros())
        .bind(last_error)
        .bind(failure)
        .bind(phase)
        .bind(done)
        .bind(known)
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

/// Cancels a task that has not ended, whoever holds it; `None`: it has ended, or is not there.
pub async fn cancel(tx: &mut Tx<'_>, id: TaskId, failure: &Failure, now: Timestamp) -> Result<Option<Task>> {
    let (last_error, failure) = stored(Some(failure));
    with_tx!(tx, CANCEL, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(id.0)
        .bind(last_error)
        .bind(failure)
        .bind(now.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

/// Puts a FAILED task back into the queue with its attempts reset; `None`: it is not FAILED.
pub async fn replay(tx: &mut Tx<'_>, id: TaskId, now: Timestamp) -> Result<Option<Task>> {
    with_tx!(tx, REPLAY, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(id.0)
        .bind(now.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}
