//! Events to the outside, written in the terminal transaction. A row's position is given after the commit, by whoever holds the counter at that moment: positions
//! have no gaps and become visible in their order, so that who reads by position never misses an event that was committed late.

use crate::{
    domain::{
        event::EventType,
        ids::{AgendaId, EventId, TaskId},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, field::Fields, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

const INSERT: Sql = Sql::each(
    "INSERT INTO event (id, type, task_id, agenda_id, body, created_us) \
     SELECT unhex(value ->> 'id'), value ->> 'type', unhex(value ->> 'task_id'), value ->> 'agenda_id', value ->> 'body', value ->> 'created_us' \
     FROM json_each($1)",
    "INSERT INTO event (id, type, task_id, agenda_id, body, created_us) SELECT id, type, task_id, agenda_id, body, created_us \
     FROM json_to_recordset(CAST($1 AS json)) AS rows (id uuid, type text, task_id uuid, agenda_id text, body text, created_us bigint)",
);
const FIND: Sql = Sql::same("SELECT id, type, task_id, agenda_id, body, created_us, position FROM event WHERE id = $1");
// Who has the counter's row gives positions; on PostgreSQL the others pass over it and find nothing to do.
const COUNTER: Sql = Sql::each(
    "SELECT last FROM event_counter WHERE name = 'position'",
    "SELECT last FROM event_counter WHERE name = 'position' FOR UPDATE SKIP LOCKED",
);
const WAIT_FOR_COUNTER: Sql = Sql::each(
    "SELECT last FROM event_counter WHERE name = 'position'",
    "SELECT last FROM event_counter WHERE name = 'position' FOR UPDATE",
);
const NEWEST_PLACED: Sql = Sql::same(
    "SELECT id, type, task_id, agenda_id, body, created_us, position FROM event WHERE task_id = $1 AND position IS NOT NULL \
     ORDER BY position DESC LIMIT 1",
);
const SET_COUNTER: Sql = Sql::same("UPDATE event_counter SET last = $1 WHERE name = 'position'");
const LAST_POSITION: Sql = Sql::same("SELECT last FROM event_counter WHERE name = 'position'");
const ANY_UNPLACED: Sql = Sql::same("SELECT 1 FROM event WHERE position IS NULL LIMIT 1");
const UNPLACED: Sql = Sql::same(
    "SELECT id, type, task_id, agenda_id, '' AS body, created_us, position FROM event WHERE position IS NULL ORDER BY created_us, id LIMIT $1",
);
// Looked for by their ids, see `outbox`.
const PLACE: Sql = Sql::each(
    "UPDATE event SET position = placed.value ->> 'position' FROM json_each($1) AS placed \
     WHERE event.id = unhex(placed.value ->> 'id') AND COALESCE(event.position, 0) = 0",
    "UPDATE event SET position = placed.position FROM json_to_recordset(CAST($1 AS json)) AS placed (id uuid, position bigint) \
     WHERE event.id = placed.id AND COALESCE(event.position, 0) = 0",
);
const AFTER: Sql =
    Sql::same("SELECT id, type, task_id, agenda_id, body, created_us, position FROM event WHERE position > $1 ORDER BY position LIMIT $2");
const OF_AGENDA_AFTER: Sql = Sql::same(
    "SELECT id, type, task_id, agenda_id, body, created_us, position FROM event WHERE agenda_id = $3 AND position > $1 ORDER BY position LIMIT $2",
);

pub const ALL: &[(&str, Sql)] = &[
    ("event::insert", INSERT),
    ("event::find", FIND),
    ("event::counter", COUNTER),
    ("event::wait_for_counter", WAIT_FOR_COUNTER),
    ("event::newest_placed", NEWEST_PLACED),
    ("event::set_counter", SET_COUNTER),
    ("event::last_position", LAST_POSITION),
    ("event::any_unplaced", ANY_UNPLACED),
    ("event::unplaced", UNPLACED),
    ("event::place", PLACE),
    ("event::after", AFTER),
    ("event::of_agenda_after", OF_AGENDA_AFTER),
];

/// An event that is to be stored.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    pub id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub agenda_id: &'a AgendaId,
    /// JSON.
    pub body: String,
    pub at: Timestamp,
}

/// An event as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub agenda_id: AgendaId,
    /// JSON.
    pub body: String,
    pub at: Timestamp,
    pub position: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct EventRow {
    id: Uuid,
    r#type: String,
    task_id: Uuid,
    agenda_id: String,
    body: String,
    created_us: i64,
    position: Option<i64>,
}

impl TryFrom<EventRow> for Event {
    type Error = crate::store::Error;

    fn try_from(row: EventRow) -> Result<Self> {
        let fields = Fields { table: "event", row: row.id };
        Ok(Self {
            id: EventId(row.id),
            event_type: fields.fit("type", row.r#type.parse())?,
            task_id: TaskId(row.task_id),
            agenda_id: fields.fit("agenda_id", row.agenda_id.parse())?,
            body: row.body,
            at: Timestamp::from_micros(row.created_us),
            position: row.position,
        })
    }
}

pub async fn insert(tx: &mut Tx<'_>, events: &[NewEvent<'_>]) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: String,
        r#type: &'static str,
        task_id: String,
        agenda_id: &'a str,
        body: &'a str,
        created_us: i64,
    }
    fn row<'a>(event: &'a NewEvent<'_>) -> Row<'a> {
        Row {
            id: rows::hex(event.id.0),
            r#type: event.event_type.as_str(),
            task_id: rows::hex(event.task_id.0),
            agenda_id: event.agenda_id.as_str(),
            body: &event.body,
            created_us: event.at.as_micros(),
        }
    }
    let list: Vec<Row<'_>> = events.iter().map(row).collect();
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
    Ok(())
}

pub async fn find(tx: &mut Tx<'_>, id: EventId) -> Result<Option<Event>> {
    with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, EventRow>(sql).bind(id.0).fetch_optional(connection).await)?
        .map(Event::try_from)
        .transpose()
}

/// Whether an event waits for its position.
pub async fn any_unplaced(tx: &mut Tx<'_>) -> Result<bool> {
    let row: Option<i32> = with_tx!(tx, ANY_UNPLACED, |connection, sql| sqlx::query_scalar(sql).fetch_optional(connection).await)?;
    Ok(row.is_some())
}

/// The position given last, and with it, until this transaction ends, the sole right to give the next; `None`: somebody else has it now.
pub async fn lock_counter(tx: &mut Tx<'_>) -> Result<Option<i64>> {
    Ok(with_tx!(tx, COUNTER, |connection, sql| sqlx::query_scalar(sql).fetch_optional(connection).await)?)
}

/// Waits until nobody else gives positions, and keeps others from it until this transaction ends.
pub async fn wait_for_counter(tx: &mut Tx<'_>) -> Result<()> {
    let _: Option<i64> = with_tx!(tx, WAIT_FOR_COUNTER, |connection, sql| sqlx::query_scalar(sql).fetch_optional(connection).await)?;
    Ok(())
}

/// The newest event of a task that has its position.
pub async fn newest_placed(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Option<Event>> {
    with_tx!(tx, NEWEST_PLACED, |connection, sql| sqlx::query_as::<_, EventRow>(sql).bind(task_id.0).fetch_optional(connection).await)?
        .map(Event::try_from)
        .transpose()
}

/// The position given last.
pub async fn last_position(tx: &mut Tx<'_>) -> Result<i64> {
    let last: Option<i64> = with_tx!(tx, LAST_POSITION, |connection, sql| sqlx::query_scalar(sql).fetch_optional(connection).await)?;
    Ok(last.unwrap_or(0))
}

/// At most `limit` events that wait for their position, oldest first; without their bodies.
pub async fn unplaced(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<Event>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    with_tx!(tx, UNPLACED, |connection, sql| sqlx::query_as::<_, EventRow>(sql).bind(limit).fetch_all(connection).await)?
        .into_iter()
        .map(Event::try_from)
        .collect()
}

/// Gives the events the positions after `last`, in this order, under [`lock_counter`].
pub async fn place(tx: &mut Tx<'_>, events: &[EventId], last: i64) -> Result<()> {
    #[derive(Serialize)]
    struct Row {
        id: String,
        position: i64,
    }
    let placed: Vec<Row> = events.iter().zip(last + 1..).map(|(id, position)| Row { id: rows::hex(id.0), position }).collect();
    let counter = placed.last().map_or(last, |row| row.position);
    with_tx!(&mut *tx, PLACE, |connection, sql| sqlx::query(sql).bind(rows::json(&placed)).execute(connection).await.map(|_| ()))?;
    with_tx!(tx, SET_COUNTER, |connection, sql| sqlx::query(sql).bind(counter).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// At most `limit` events after `position`, in order; of one agenda, or of all.
pub async fn after(tx: &mut Tx<'_>, position: i64, agenda: Option<&AgendaId>, limit: usize) -> Result<Vec<Event>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = match agenda {
        None => with_tx!(tx, AFTER, |connection, sql| sqlx::query_as::<_, EventRow>(sql)
            .bind(position)
            .bind(limit)
            .fetch_all(connection)
            .await)?,
        Some(agenda) => with_tx!(tx, OF_AGENDA_AFTER, |connection, sql| sqlx::query_as::<_, EventRow>(sql)
            .bind(position)
            .bind(limit)
            .bind(agenda.as_str())
            .fetch_all(connection)
            .await)?,
    };
    rows.into_iter().map(Event::try_from).collect()
}
