//! A task's row and its look-ups by id.

use crate::{
    base::chain::chain,
    domain::{
        ids::{TaskId, WorkerId},
        task::{Progress, Task},
        time::Timestamp,
        trace::TraceContext,
    },
    store::{Error, IdList, Result, Sql, Tx, field::Fields, with_tx},
};
use uuid::Uuid;

/// The columns that make a [`Task`]; the lease token is not among them: only its holder knows it.
macro_rules! columns {
    () => {
        "id, kind, agenda_id, payload, client_reference, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, \
         lease_until_us, worker_id, phase, steps_done, steps_known, last_error, failure, protocol_id, caller, traceparent, tracestate, revision, \
         created_us, started_us, finished_us"
    };
}
pub(super) use columns;

const FIND: Sql = Sql::same(concat!("SELECT ", columns!(), " FROM task WHERE id = $1"));
const FIND_MANY: Sql = Sql::each(
    concat!("SELECT ", columns!(), " FROM task WHERE id IN (SELECT unhex(value) FROM json_each($1))"),
    concat!("SELECT ", columns!(), " FROM task WHERE id = ANY($1)"),
);
const REVISIONS: Sql = Sql::each(
    "SELECT id, revision FROM task WHERE id IN (SELECT unhex(value) FROM json_each($1))",
    "SELECT id, revision FROM task WHERE id = ANY($1)",
);

pub const ALL: &[(&str, Sql)] = &[("task::find", FIND), ("task::find_many", FIND_MANY), ("task::revisions", REVISIONS)];

#[derive(sqlx::FromRow)]
pub(super) struct TaskRow {
    id: Uuid,
    kind: String,
    agenda_id: Option<String>,
    payload: String,
    client_reference: Option<String>,
    status: String,
    claim_no: i64,
    attempt_no: i64,
    max_attempts: i64,
    run_at_us: i64,
    next_attempt_us: i64,
    lease_until_us: Option<i64>,
    worker_id: Option<Uuid>,
    phase: Option<String>,
    steps_done: i64,
    steps_known: i64,
    last_error: Option<String>,
    failure: Option<String>,
    protocol_id: Option<Uuid>,
    caller: String,
    traceparent: Option<String>,
    tracestate: Option<String>,
    revision: i64,
    created_us: i64,
    started_us: Option<i64>,
    finished_us: Option<i64>,
}

impl TryFrom<TaskRow> for Task {
    type Error = Error;

    fn try_from(row: TaskRow) -> Result<Self> {
        let fields = Fields { table: "task", row: row.id };
        Ok(Self {
            id: TaskId(row.id),
            kind: fields.fit("kind", row.kind.parse())?,
            agenda_id: fields.fit("agenda_id", row.agenda_id.map(TryInto::try_into).transpose())?,
            payload: row.payload,
            client_reference: row.client_reference,
            status: fields.fit("status", row.status.parse())?,
            claim_no: fields.fit("claim_no", row.claim_no.try_into())?,
            attempt_no: fields.fit("attempt_no", row.attempt_no.try_into())?,
            max_attempts: fields.fit("max_attempts", row.max_attempts.try_into())?,
            run_at: Timestamp::from_micros(row.run_at_us),
            next_attempt_at: Timestamp::from_micros(row.next_attempt_us),
            lease_until: row.lease_until_us.map(Timestamp::from_micros),
            worker_id: row.worker_id.map(WorkerId),
            phase: fields.fit("phase", row.phase.map(|phase| phase.parse()).transpose())?,
            progress: Progress {
                done: fields.fit("steps_done", row.steps_done.try_into())?,
                known: fields.fit("steps_known", row.steps_known.try_into())?,
            },
            last_error: row.last_error,
            failure: fields.fit("failure", row.failure.map(|failure| serde_json::from_str(&failure)).transpose())?,
            protocol_id: row.protocol_id.map(Into::into),
            caller: row.caller,
            // A trace that cannot be read is no reason not to run the task.
            trace: row
                .traceparent
                .and_then(|parent| parent.parse::<TraceContext>().ok())
                .map(|trace| trace.with_state(row.tracestate.as_deref())),
            revision: fields.fit("revision", row.revision.try_into())?,
            created_at: Timestamp::from_micros(row.created_us),
            started_at: row.started_us.map(Timestamp::from_micros),
            finished_at: row.finished_us.map(Timestamp::from_micros),
        })
    }
}

pub async fn find(tx: &mut Tx<'_>, id: TaskId) -> Result<Option<Task>> {
    with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, TaskRow>(sql).bind(id.0).fetch_optional(connection).await)?
        .map(Task::try_from)
        .transpose()
}

/// The tasks that there are of these, in no order. One that does not fit its types is told in the log and left out: it must not hide the others from everyone
/// who waits for them.
pub async fn find_many(tx: &mut Tx<'_>, ids: IdList) -> Result<Vec<Task>> {
    let rows = with_tx!(tx, FIND_MANY, |connection, sql| sqlx::query_as::<_, TaskRow>(sql).bind(ids).fetch_all(connection).await)?;
    let readable = rows.into_iter().filter_map(|row| match Task::try_from(row) {
        Ok(task) => Some(task),
        Err(error) => {
            tracing::error!(error = chain(&error), "a task cannot be read");
            None
        }
    });
    Ok(readable.collect())
}

/// The revision of each task that there is of these: cheap to ask for by the thousand.
pub async fn revisions(tx: &mut Tx<'_>, ids: IdList) -> Result<Vec<(TaskId, u64)>> {
    let rows: Vec<(Uuid, i64)> =
        with_tx!(tx, REVISIONS, |connection, sql| sqlx::query_as::<_, (Uuid, i64)>(sql).bind(ids).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(id, revision)| (TaskId(id), u64::try_from(revision).unwrap_or(0))).collect())
}
