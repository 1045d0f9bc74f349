//! Claims of a task: the timeline people look at. A row is opened in the transaction of the claim and closed in the one that ends it.

use crate::{
    domain::{
        failure::Failure,
        ids::{AttemptId, TaskId, WorkerId},
        task::{Attempt, AttemptOutcome, Phase, Task},
        time::Timestamp,
    },
    store::{Error, Result, Sql, Tx, field::Fields, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

const OPEN: Sql = Sql::each(
    "INSERT INTO attempt (id, task_id, claim_no, attempt_no, worker_id, started_us) \
     SELECT unhex(value ->> 'id'), unhex(value ->> 'task_id'), value ->> 'claim_no', value ->> 'attempt_no', $2, $3 FROM json_each($1)",
    "INSERT INTO attempt (id, task_id, claim_no, attempt_no, worker_id, started_us) \
     SELECT id, task_id, claim_no, attempt_no, $2, $3 \
     FROM json_to_recordset(CAST($1 AS json)) AS rows (id uuid, task_id uuid, claim_no bigint, attempt_no bigint)",
);
const CLOSE: Sql = Sql::each(
    "UPDATE attempt SET ended_us = rows.value ->> 'ended', outcome = rows.value ->> 'outcome', failure = rows.value ->> 'failure', \
     phase = rows.value ->> 'phase' FROM json_each($1) AS rows \
     WHERE attempt.task_id = unhex(rows.value ->> 'task') AND attempt.claim_no = rows.value ->> 'claim' AND attempt.ended_us IS NULL",
    "UPDATE attempt SET ended_us = rows.ended, outcome = rows.outcome, failure = rows.failure, phase = rows.phase \
     FROM json_to_recordset(CAST($1 AS json)) AS rows (task uuid, claim bigint, ended bigint, outcome text, failure text, phase text) \
     WHERE attempt.task_id = rows.task AND attempt.claim_no = rows.claim AND attempt.ended_us IS NULL",
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

/// Opens the rows of the claims by which tasks have just been taken.
pub async fn open(tx: &mut Tx<'_>, claims: &[(AttemptId, &Task)], worker_id: WorkerId, now: Timestamp) -> Result<()> {
    #[derive(Serialize)]
    struct Row {
        id: String,
        task_id: String,
        claim_no: u32,
        attempt_no: u32,
    }
    let row = |(id, task): &(AttemptId, &Task)| Row {
        id: rows::hex(id.0),
        task_id: rows::hex(task.id.0),
        claim_no: task.claim_no,
        attempt_no: task.attempt_no,
    };
    let list: Vec<Row> = claims.iter().map(row).collect();
    with_tx!(tx, OPEN, |connection, sql| sqlx::query(sql)
        .bind(rows::json(&list))
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
    pub task_id: TaskId,
    pub claim_no: u32,
    pub outcome: AttemptOutcome,
    pub failure: Option<&'a Failure>,
    pub phase: Option<Phase>,
    pub at: Timestamp,
}

/// Closes claims' rows; one that is closed already stays as it is.
pub async fn close(tx: &mut Tx<'_>, closings: &[Closing<'_>]) -> Result<()> {
    #[derive(Serialize)]
    struct Row {
        task: String,
        claim: u32,
        ended: i64,
        outcome: &'static str,
        failure: Option<String>,
        phase: Option<&'static str>,
    }
    let row = |closing: &Closing<'_>| Row {
        task: rows::hex(closing.task_id.0),
        claim: closing.claim_no,
        ended: closing.at.as_micros(),
        outcome: closing.outcome.as_str(),
        failure: closing.failure.map(|failure| serde_json::to_string(failure).expect("a failure holds only strings")),
        phase: closing.phase.map(Phase::as_str),
    };
    let list: Vec<Row> = closings.iter().map(row).collect();
    with_tx!(tx, CLOSE, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
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
