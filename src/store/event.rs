//! Events to the outside, written in the terminal transaction. A row's position is given later by one claimed loop.

use crate::{
    domain::{
        event::EventType,
        ids::{AgendaId, EventId, TaskId},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, field::Fields, rows, with_tx},
};
use serde::Serialize;
use serde_json::Value;

const INSERT: Sql = Sql::each(
    "INSERT INTO event (id, type, task_id, agenda_id, body, created_us) \
     SELECT unhex(value ->> 'id'), value ->> 'type', unhex(value ->> 'task_id'), value ->> 'agenda_id', value ->> 'body', value ->> 'created_us' \
     FROM json_each($1)",
    "INSERT INTO event (id, type, task_id, agenda_id, body, created_us) SELECT id, type, task_id, agenda_id, body, created_us \
     FROM json_to_recordset(CAST($1 AS json)) AS rows (id uuid, type text, task_id uuid, agenda_id text, body text, created_us bigint)",
);
const OF_TASK: Sql = Sql::same("SELECT body FROM event WHERE task_id = $1 ORDER BY created_us, id");

pub const ALL: &[(&str, Sql)] = &[("event::insert", INSERT), ("event::of_task", OF_TASK)];

/// An event that is to be stored.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    pub id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub agenda_id: &'a AgendaId,
    pub body: Value,
    pub at: Timestamp,
}

pub async fn insert(tx: &mut Tx<'_>, events: &[NewEvent<'_>]) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: String,
        r#type: &'static str,
        task_id: String,
        agenda_id: &'a str,
        body: String,
        created_us: i64,
    }
    fn row<'a>(event: &'a NewEvent<'_>) -> Row<'a> {
        Row {
            id: rows::hex(event.id.0),
            r#type: event.event_type.as_str(),
            task_id: rows::hex(event.task_id.0),
            agenda_id: event.agenda_id.as_str(),
            body: event.body.to_string(),
            created_us: event.at.as_micros(),
        }
    }
    let list: Vec<Row<'_>> = events.iter().map(row).collect();
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// The bodies of a task's events, oldest first; a task that was replayed has more than one.
pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<Value>> {
    let rows: Vec<(String,)> =
        with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, (String,)>(sql).bind(task_id.0).fetch_all(connection).await)?;
    let fields = Fields { table: "event", row: task_id };
    rows.into_iter().map(|(body,)| fields.fit("body", serde_json::from_str(&body))).collect()
}
