//! Owed answers: which caller still has a task's answer coming.
//!
//! A row is written with the v1 call's submit and deleted when its answer was handed out, so after a crash, a 504 or a broken connection in between the
//! caller's next call finds it. Only COMPLETED tasks are ever answered from here: failures and cancels are not owed.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::domain::{
    ids::{AgendaId, ProtocolId, TaskId},
    time::Timestamp,
};
use uuid::Uuid;

/// Every query of this file, for the test that prepares them all.
pub const ALL: &[(&str, Sql)] = &[
    ("owed_answer::NOTE", NOTE),
    ("owed_answer::FIND", FIND),
    ("owed_answer::FORGET", FORGET),
    ("owed_answer::FORGET_UNSUCCESSFUL", FORGET_UNSUCCESSFUL),
];

const NOTE: Sql = Sql::same(
    "INSERT INTO owed_answer (caller, agenda_id, task_id, since_us) VALUES ($1, $2, $3, $4)
     ON CONFLICT (caller, task_id) DO NOTHING",
);

/// `caller` now waits for the answer of `task`.
///
/// # Errors
/// When the database does not take it.
pub async fn note(tx: &mut Tx<'_>, caller: &str, agenda_id: &AgendaId, task: TaskId, now: Timestamp) -> Result<()> {
    with_tx!(tx, NOTE, |connection, sql| {
        sqlx::query(sql).bind(caller).bind(agenda_id.as_str()).bind(task.0).bind(now.as_micros()).execute(connection).await?;
        Ok(())
    })
}

const FIND: Sql = Sql::same(
    "SELECT o.task_id, t.protocol_id, t.finished_us
     FROM owed_answer o JOIN task t ON t.id = o.task_id
     WHERE o.caller = $1 AND o.agenda_id = $2 AND t.status = 'COMPLETED' AND t.protocol_id IS NOT NULL AND t.finished_us >= $3
       -- An active task comes first: it is joined, so that nobody is given an answer which is just being replaced.
       AND NOT EXISTS (SELECT 1 FROM task a WHERE a.agenda_id = $2 AND a.kind = 'protocol' AND a.status IN ('PENDING', 'IN_PROGRESS'))
     ORDER BY t.finished_us DESC, t.id DESC
     LIMIT 1",
);

/// An answer that is still to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owed {
    pub task: TaskId,
    pub protocol: ProtocolId,
    pub finished_at: Timestamp,
}

/// The newest COMPLETED task whose answer `caller` is owed, finished at `finished_after` or later; none while the agenda has an active task.
///
/// # Errors
/// When the database cannot be read.
pub async fn find(tx: &mut Tx<'_>, caller: &str, agenda_id: &AgendaId, finished_after: Timestamp) -> Result<Option<Owed>> {
    let row: Option<(Uuid, Uuid, i64)> = with_tx!(tx, FIND, |connection, sql| {
        sqlx::query_as(sql).bind(caller).bind(agenda_id.as_str()).bind(finished_after.as_micros()).fetch_optional(connection).await?
    });
    Ok(row.map(|(task, protocol, finished_us)| Owed {
        task: TaskId(task),
        protocol: ProtocolId(protocol),
        finished_at: Timestamp::from_micros(finished_us),
    }))
}

const FORGET: Sql = Sql::same(
    "DELETE FROM owed_answer
     WHERE caller = $1 AND agenda_id = $2
       -- The answer that was handed out, and older ones of the agenda: nobody wants those any more.
       AND task_id IN (SELECT id FROM task WHERE agenda_id = $2 AND finished_us <= $3)",
);

/// An answer of the agenda, of a task finished at `finished_at`, was handed out to `caller`.
///
/// # Errors
/// When the database does not take it.
pub async fn forget(tx: &mut Tx<'_>, caller: &str, agenda_id: &AgendaId, finished_at: Timestamp) -> Result<()> {
    with_tx!(tx, FORGET, |connection, sql| {
        sqlx::query(sql).bind(caller).bind(agenda_id.as_str()).bind(finished_at.as_micros()).execute(connection).await?;
        Ok(())
    })
}

const FORGET_UNSUCCESSFUL: Sql = Sql::same(
    "DELETE FROM owed_answer
     WHERE caller = $1 AND agenda_id = $2
       AND task_id IN (SELECT id FROM task WHERE agenda_id = $2 AND status IN ('FAILED', 'CANCELLED'))",
);

/// Drops what is left of calls whose task failed or was cancelled: a new call is a new try.
///
/// # Errors
/// When the database does not take it.
pub async fn forget_unsuccessful(tx: &mut Tx<'_>, caller: &str, agenda_id: &AgendaId) -> Result<()> {
    with_tx!(tx, FORGET_UNSUCCESSFUL, |connection, sql| {
        sqlx::query(sql).bind(caller).bind(agenda_id.as_str()).execute(connection).await?;
        Ok(())
    })
}
