//! Claims of a task: the timeline people look at. A row is opened in the transaction of the claim and closed in the one that ends it.

use crate::{
    domain::{
        failure::Failure,
        ids::{AttemptId, TaskId, WorkerId},
        task::{Attempt, AttemptOutcome, Phase, Task},
        time::Timestamp,
    },
    store::{Error, Result, Sql, Tx, field::Fields, with_tx},
};
use uuid::Uuid;

const OPEN: Sql =
    Sql::same("INSERT INTO attempt (id, task_id, claim_no, attempt_no, worker_id, started_us) VALUES ($1, $2, $3, $4, $5, $6)");
const CLOSE: Sql = Sql::same(
    "UPDATE attempt SET ended_us = $3, outcome = $4, failure = $5, phase = $6 WHERE task_id = $1 AND claim_no = $2 AND ended_us IS NULL",
);
const OUTCOME: Sql = Sql::same("SELECT outcome FROM attempt WHERE task_id = $1 AND claim_no = $2");
const OF_TASK: Sql = Sql::same(
    "SELECT task_id, claim_no, attempt_no, worker_id, started_us, ended_us, outcome, failure, phase FROM attempt \
     WHERE task_id = $1 ORDER BY claim_no",
);

pub const ALL: &[(&str, Sql)] =
    &[("attempt::open", OPEN), ("attempt::close", CLOSE), ("attempt::outcome", OUTCOME), ("attempt::of_task", OF_TASK)];

#[derive(sqlx::FromRow)]
struct AttemptRow {
    task_id: Uuid,
    claim_no: i64,
    attempt_no: i64,
    worker_id: Uuid,
    started_us: i64,
    ended_us: Option<i64>,
    outcome: Option<String>,
    failure: Option<String>,
    phase: Option<String>,
}

impl TryFrom<AttemptRow> for Attempt {
    type Error = Error;

    fn try_from(row: AttemptRow) -> Result<Self> {
        let fields = Fields { table: "attempt", row: format!("{}/{}", row.task_id, row.claim_no) };
        Ok(Self {
            claim_no: fields.fit("claim_no", row.claim_no.try_into())?,
            attempt_no: fields.fit("attempt_no", row.attempt_no.try_into())?,
            worker_id: WorkerId(row.worker_id),
            started_at: Timestamp::from_micros(row.started_us),
            ended_at: row.ended_us.map(Timestamp::from_micros),
            outcome: fields.fit("outcome", row.outcome.map(|outcome| outcome.parse()).transpose())?,
            failure: fields.fit("failure", row.failure.map(|failure| serde_json::from_str(&failure)).transpose())?,
            phase: fields.fit("phase", row.phase.map(|phase| phase.parse()).transpose())?,
        })
    }
}

/// Opens the row of the claim that `task` has just been taken by.
pub async fn open(tx: &mut Tx<'_>, id: AttemptId, task: &Task, worker_id: WorkerId, now: Timestamp) -> Result<()> {
    with_tx!(tx, OPEN, |connection, sql| sqlx::query(sql)
        .bind(id.0)
        .bind(task.id.0)
        .bind(i64::from(task.claim_no))
        .bind(i64::from(task.attempt_no))
        .bind(worker_id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// How a claim ended.
#[derive(Debug, Clone)]
pub struct Closing<'a> {
    pub outcome: AttemptOutcome,
    pub failure: Option<&'a Failure>,
    pub phase: Option<Phase>,
}

/// Closes the claim's row; one that is closed already stays as it is.
pub async fn close(tx: &mut Tx<'_>, task_id: TaskId, claim_no: u32, closing: Closing<'_>, now: Timestamp) -> Result<()> {
    let failure = closing.failure.map(|failure| serde_json::to_string(failure).expect("a failure holds only strings"));
    with_tx!(tx, CLOSE, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(i64::from(claim_no))
        .bind(now.as_micros())
        .bind(closing.outcome.as_str())
        .bind(failure)
        .bind(closing.phase.map(Phase::as_str))
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// How a claim ended; `None` while it runs. Tells a holder whose commit's outcome was unknown whether it happened.
pub async fn outcome(tx: &mut Tx<'_>, task_id: TaskId, claim_no: u32) -> Result<Option<AttemptOutcome>> {
    let row: Option<(Option<String>,)> = with_tx!(tx, OUTCOME, |connection, sql| sqlx::query_as::<_, (Option<String>,)>(sql)
        .bind(task_id.0)
        .bind(i64::from(claim_no))
        .fetch_optional(connection)
        .await)?;
    let fields = Fields { table: "attempt", row: format!("{task_id}/{claim_no}") };
    fields.fit("outcome", row.and_then(|(outcome,)| outcome).map(|outcome| outcome.parse()).transpose())
}

/// A task's claims, oldest first.
pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<Attempt>> {
    with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, AttemptRow>(sql).bind(task_id.0).fetch_all(connection).await)?
        .into_iter()
        .map(Attempt::try_from)
        .collect()
}
