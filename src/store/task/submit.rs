//! Accepting a task: the insert whose conflict is the join.

use super::row::{TaskRow, columns};
use crate::{
    domain::{
        ids::{AgendaId, TaskId},
        task::{Kind, Task},
        time::Timestamp,
        trace::TraceContext,
    },
    store::{Result, Sql, Tx, with_tx},
};

// The conflict target is the partial index: "one active task per agenda". A conflict on the id would be a defect and stays an error.
const INSERT: Sql = Sql::same(concat!(
    "INSERT INTO task (id, kind, agenda_id, payload, client_reference, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, \
     steps_done, steps_known, caller, traceparent, tracestate, revision, created_us) \
     VALUES ($1, $2, $3, $4, $5, 'PENDING', 0, 0, $6, $7, $7, 0, 0, $8, $9, $10, 1, $11) \
     ON CONFLICT (agenda_id) WHERE kind = 'protocol' AND status IN ('PENDING', 'IN_PROGRESS') DO NOTHING \
     RETURNING ",
    columns!()
));
const ACTIVE_OF_AGENDA: Sql = Sql::same(concat!(
    "SELECT ",
    columns!(),
    " FROM task WHERE agenda_id = $1 AND kind = 'protocol' AND status IN ('PENDING', 'IN_PROGRESS')"
));
// A task in back-off has been claimed before and keeps its time: a crowd of joiners must not turn the back-off into a busy loop.
const PULL_FORWARD: Sql = Sql::same(concat!(
    "UPDATE task SET run_at_us = $2, next_attempt_us = $2, revision = revision + 1 \
     WHERE id = $1 AND status = 'PENDING' AND claim_no = 0 AND next_attempt_us > $2 RETURNING ",
    columns!()
));

pub const ALL: &[(&str, Sql)] =
    &[("task::insert", INSERT), ("task::active_of_agenda", ACTIVE_OF_AGENDA), ("task::pull_forward", PULL_FORWARD)];

/// A task that is to be accepted.
#[derive(Debug, Clone)]
pub struct NewTask {
    pub id: TaskId,
    pub kind: Kind,
    pub agenda_id: Option<AgendaId>,
    pub payload: String,
    pub client_reference: Option<String>,
    pub max_attempts: u32,
    pub run_at: Timestamp,
    pub caller: String,
    pub trace: Option<TraceContext>,
    pub created_at: Timestamp,
}

/// Inserts a task; `None`: the agenda has an active one.
pub async fn insert(tx: &mut Tx<'_>, task: &NewTask) -> Result<Option<Task>> {
    with_tx!(tx, INSERT, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(task.id.0)
        .bind(task.kind.as_str())
        .bind(task.agenda_id.as_ref().map(AgendaId::as_str))
        .bind(&task.payload)
        .bind(&task.client_reference)
        .bind(i64::from(task.max_attempts))
        .bind(task.run_at.as_micros())
        .bind(&task.caller)
        .bind(task.trace.as_ref().map(TraceContext::parent))
        .bind(task.trace.as_ref().and_then(TraceContext::state))
        .bind(task.created_at.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

pub async fn active_of_agenda(tx: &mut Tx<'_>, agenda_id: &AgendaId) -> Result<Option<Task>> {
    with_tx!(tx, ACTIVE_OF_AGENDA, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(agenda_id.as_str())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

/// Moves a task that was never claimed to an earlier time; `None`: it is due earlier anyway, or was claimed.
pub async fn pull_forward(tx: &mut Tx<'_>, id: TaskId, to: Timestamp) -> Result<Option<Task>> {
    with_tx!(tx, PULL_FORWARD, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(id.0)
        .bind(to.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}
