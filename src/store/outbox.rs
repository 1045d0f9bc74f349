//! Stored messages, written in the transaction of what they announce. Rows are taken by state, never by "id > last": a row that commits late is found all
//! the same. A claim on a row runs out, so a relay that dies between send and mark costs a second send, which the inbox drops.

use crate::{
    base::chain::chain,
    domain::{
        envelope::{Envelope, PROCESS_TASK},
        ids::{MessageId, TaskId},
        time::Timestamp,
    },
    store::{IdList, Result, Sql, Tx, with_tx},
};
use sqlx::{ColumnIndex, Decode, Row, Type};
use std::time::Duration;
use uuid::Uuid;

const INSERT: Sql = Sql::same(
    "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, claim_token, claim_until_us, send_attempts, created_us) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)",
);
const CLAIM_DUE: Sql = Sql::each(
    "UPDATE outbox SET claim_token = $1, claim_until_us = $2 WHERE message_id IN ( \
       SELECT message_id FROM outbox WHERE published_us IS NULL AND available_us <= $3 \
       AND (claim_until_us IS NULL OR claim_until_us <= $3) ORDER BY available_us LIMIT $4) \
     RETURNING message_id, task_id, payload, send_attempts",
    "UPDATE outbox SET claim_token = $1, claim_until_us = $2 WHERE message_id IN ( \
       SELECT message_id FROM outbox WHERE published_us IS NULL AND available_us <= $3 \
       AND (claim_until_us IS NULL OR claim_until_us <= $3) ORDER BY available_us LIMIT $4 FOR UPDATE SKIP LOCKED) \
     RETURNING message_id, task_id, payload, send_attempts",
);
const NEXT_DUE: Sql = Sql::same("SELECT MIN(available_us) FROM outbox WHERE published_us IS NULL AND available_us > $1");
// `COALESCE(…) = 0` here and below says `IS NULL` without offering the index of everything that is unpublished: rows named by their ids are not looked for there,
// whatever the database believes about how many there are.
// Without the claim token: that a message went out is true whoever holds the row by now.
const MARK_PUBLISHED: Sql = Sql::each(
    "UPDATE outbox SET published_us = $2, claim_token = NULL, claim_until_us = NULL \
     WHERE message_id IN (SELECT unhex(value) FROM json_each($1)) AND COALESCE(published_us, 0) = 0",
    "UPDATE outbox SET published_us = $2, claim_token = NULL, claim_until_us = NULL WHERE message_id = ANY($1) AND COALESCE(published_us, 0) = 0",
);
const BACK_OFF: Sql = Sql::same(
    "UPDATE outbox SET send_attempts = send_attempts + 1, last_error = $2, available_us = $3, claim_token = NULL, claim_until_us = NULL \
     WHERE message_id = $1 AND COALESCE(published_us, 0) = 0",
);
const PULL_FORWARD: Sql = Sql::same(
    "UPDATE outbox SET available_us = $2 WHERE task_id = $1 AND COALESCE(published_us, 0) = 0 AND available_us > $2 AND send_attempts = 0",
);
const MARK_TASKS: Sql = Sql::each(
    "UPDATE outbox SET published_us = $2, claim_token = NULL, claim_until_us = NULL \
     WHERE task_id IN (SELECT unhex(value) FROM json_each($1)) AND COALESCE(published_us, 0) = 0",
    "UPDATE outbox SET published_us = $2, claim_token = NULL, claim_until_us = NULL WHERE task_id = ANY($1) AND COALESCE(published_us, 0) = 0",
);
const DELETE_UNPUBLISHED: Sql = Sql::each(
    "DELETE FROM outbox WHERE task_id IN (SELECT unhex(value) FROM json_each($1)) AND COALESCE(published_us, 0) = 0",
    "DELETE FROM outbox WHERE task_id = ANY($1) AND COALESCE(published_us, 0) = 0",
);
const OF_TASK: Sql = Sql::same(
    "SELECT message_id, task_id, payload, available_us, published_us, send_attempts, last_error, created_us FROM outbox \
     WHERE task_id = $1 ORDER BY created_us, message_id",
);
const UNPUBLISHED: Sql = Sql::same("SELECT COUNT(*), MIN(available_us) FROM outbox WHERE published_us IS NULL AND available_us <= $1");

pub const ALL: &[(&str, Sql)] = &[
    ("outbox::insert", INSERT),
    ("outbox::claim_due", CLAIM_DUE),
    ("outbox::next_due", NEXT_DUE),
    ("outbox::mark_published", MARK_PUBLISHED),
    ("outbox::back_off", BACK_OFF),
    ("outbox::pull_forward", PULL_FORWARD),
    ("outbox::mark_tasks", MARK_TASKS),
    ("outbox::delete_unpublished", DELETE_UNPUBLISHED),
    ("outbox::of_task", OF_TASK),
    ("outbox::unpublished", UNPUBLISHED),
];

/// A relay's claim on rows.
#[derive(Debug, Clone, Copy)]
pub struct RelayClaim {
    pub token: Uuid,
    pub until: Timestamp,
}

/// A row that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub message_id: MessageId,
    pub task_id: TaskId,
    /// The envelope as stored: a JSON text, or whatever somebody put there.
    pub payload: String,
    /// How often sending it was refused.
    pub send_attempts: u32,
}

/// A row as pages and tests see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub message_id: MessageId,
    pub task_id: TaskId,
    pub payload: String,
    pub available_at: Timestamp,
    pub published_at: Option<Timestamp>,
    pub send_attempts: u32,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
}

/// Stores an envelope, available at `available_at`; `claim`: it is the writer's own relay's from the start.
pub async fn insert(
    tx: &mut Tx<'_>,
    envelope: &Envelope,
    available_at: Timestamp,
    claim: Option<RelayClaim>,
    now: Timestamp,
) -> Result<()> {
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(envelope.message_id.0)
        .bind(envelope.task_id.0)
        .bind(PROCESS_TASK)
        .bind(envelope.to_json())
        .bind(available_at.as_micros())
        .bind(claim.map(|claim| claim.token))
        .bind(claim.map(|claim| claim.until.as_micros()))
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Claims at most `limit` rows that are due, unpublished and nobody else's.
pub async fn claim_due(tx: &mut Tx<'_>, claim: RelayClaim, now: Timestamp, limit: usize) -> Result<Vec<Outgoing>> {
    let rows: Vec<std::result::Result<Outgoing, sqlx::Error>> = with_tx!(tx, CLAIM_DUE, |connection, sql| sqlx::query(sql)
        .bind(claim.token)
        .bind(claim.until.as_micros())
        .bind(now.as_micros())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await
        .map(|rows| rows.iter().map(Outgoing::read).collect()))?;
    let readable = rows.into_iter().filter_map(|row| match row {
        Ok(row) => Some(row),
        Err(error) => {
            tracing::error!(error = chain(&error), "a message cannot be read");
            None
        }
    });
    Ok(readable.collect())
}

impl Outgoing {
    /// What cannot be read of a damaged row is put in its place so that it is unsendable: then it is put off like any other and stands before nobody. Only a
    /// row whose id cannot be read is left to its claim.
    fn read<'r, R>(row: &'r R) -> std::result::Result<Self, sqlx::Error>
    where
        R: Row,
        usize: ColumnIndex<R>,
        Uuid: Decode<'r, R::Database> + Type<R::Database>,
        String: Decode<'r, R::Database> + Type<R::Database>,
        i64: Decode<'r, R::Database> + Type<R::Database>,
    {
        let message_id = MessageId(row.try_get(0)?);
        let (task_id, payload) = match (row.try_get(1), row.try_get(2)) {
            (Ok(task_id), Ok(payload)) => (TaskId(task_id), payload),
            _ => (TaskId(Uuid::nil()), String::new()),
        };
        let send_attempts: i64 = row.try_get(3).unwrap_or(0);
        Ok(Self { message_id, task_id, payload, send_attempts: u32::try_from(send_attempts).unwrap_or(u32::MAX) })
    }
}

/// When the next unpublished row after `now` becomes available.
pub async fn next_due(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Timestamp>> {
    let (next,): (Option<i64>,) = with_tx!(tx, NEXT_DUE, |connection, sql| sqlx::query_as::<_, (Option<i64>,)>(sql)
        .bind(now.as_micros())
        .fetch_one(connection)
        .await)?;
    Ok(next.map(Timestamp::from_micros))
}

pub async fn mark_published(tx: &mut Tx<'_>, message_ids: &[MessageId], now: Timestamp) -> Result<()> {
    let ids: IdList = message_ids.iter().map(|id| id.0).collect();
    with_tx!(tx, MARK_PUBLISHED, |connection, sql| sqlx::query(sql).bind(ids).bind(now.as_micros()).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Puts an unsendable row off to `until`, so that it never stands before others.
pub async fn back_off(tx: &mut Tx<'_>, message_id: MessageId, error: &str, until: Timestamp) -> Result<()> {
    with_tx!(tx, BACK_OFF, |connection, sql| sqlx::query(sql)
        .bind(message_id.0)
        .bind(error)
        .bind(until.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Makes a task's unsent messages available at `to` if that is earlier.
pub async fn pull_forward(tx: &mut Tx<'_>, task_id: TaskId, to: Timestamp) -> Result<()> {
    with_tx!(tx, PULL_FORWARD, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(to.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Marks the messages of tasks published: whoever claimed the tasks did not need them.
pub async fn mark_tasks(tx: &mut Tx<'_>, tasks: &[TaskId], now: Timestamp) -> Result<()> {
    let tasks: IdList = tasks.iter().map(|id| id.0).collect();
    with_tx!(tx, MARK_TASKS, |connection, sql| sqlx::query(sql).bind(tasks).bind(now.as_micros()).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Deletes the messages of tasks that have ended; they would only be dropped later.
pub async fn delete_unpublished(tx: &mut Tx<'_>, tasks: &[TaskId]) -> Result<()> {
    let tasks: IdList = tasks.iter().map(|id| id.0).collect();
    with_tx!(tx, DELETE_UNPUBLISHED, |connection, sql| sqlx::query(sql).bind(tasks).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// A task's messages, oldest first.
pub async fn of_task(tx: &mut Tx<'_>, task_id: TaskId) -> Result<Vec<Message>> {
    #[derive(sqlx::FromRow)]
    struct MessageRow {
        message_id: Uuid,
        task_id: Uuid,
        payload: String,
        available_us: i64,
        published_us: Option<i64>,
        send_attempts: i64,
        last_error: Option<String>,
        created_us: i64,
    }
    let rows = with_tx!(tx, OF_TASK, |connection, sql| sqlx::query_as::<_, MessageRow>(sql).bind(task_id.0).fetch_all(connection).await)?;
    Ok(rows
        .into_iter()
        .map(|row| Message {
            message_id: MessageId(row.message_id),
            task_id: TaskId(row.task_id),
            payload: row.payload,
            available_at: Timestamp::from_micros(row.available_us),
            published_at: row.published_us.map(Timestamp::from_micros),
            send_attempts: u32::try_from(row.send_attempts).unwrap_or(u32::MAX),
            last_error: row.last_error,
            created_at: Timestamp::from_micros(row.created_us),
        })
        .collect())
}

/// How many messages are due and unpublished, and for how long the longest has been.
pub async fn unpublished(tx: &mut Tx<'_>, now: Timestamp) -> Result<(u64, Duration)> {
    let (count, oldest): (i64, Option<i64>) = with_tx!(tx, UNPUBLISHED, |connection, sql| sqlx::query_as::<_, (i64, Option<i64>)>(sql)
        .bind(now.as_micros())
        .fetch_one(connection)
        .await)?;
    let age = oldest.map_or(Duration::ZERO, |oldest| now.since(Timestamp::from_micros(oldest)));
    Ok((u64::try_from(count).unwrap_or(0), age))
}
