//! Events to the outside, written in the terminal transaction. A row's position is given later by one claimed loop.

use crate::{
    domain::{
        event::EventType,
        ids::{AgendaId, EventId, TaskId},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, field::Fields, with_tx},
};
use serde_json::Value;

const INSERT: Sql = Sql::same("INSERT INTO event (id, type, task_id, agenda_id, body, created_us) VALUES ($1, $2, $3, $4, $5, $6)");
const OF_TASK: Sql = Sql::same("SELECT body FROM event WHERE task_id = $1 ORDER BY created_us, id");

pub const ALL: &[(&str, Sql)] = &[("event::insert", INSERT), ("event::of_task", OF_TASK)];

/// An event that is to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    pub id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub agenda_id: &'a AgendaId,
    pub body: &'a Value,
}

pub async fn insert(tx: &mut Tx<'_>, event: NewEvent<'_>, now: Timestamp) -> Result<()> {
    let body = event.body.to_string();
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(event.id.0)
        .bind(event.event_type.as_str())
        .bind(event.task_id.0)
        .bind(event.agenda_id.as_str())
        .bind(body)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// The bodies of a task's events, oldest first; a task that was replayed has more than one.
pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<Value>> {
    let rows: Vec<(String,)> =
        with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, (String,)>(sql).bind(task_id.0).fetch_all(connection).await)?;
    let fields = Fields { table: "event", row: task_id };
    rows.into_iter().map(|(body,)| fields.fit("body", serde_json::from_str(&body))).collect()
}
