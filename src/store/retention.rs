//! What is too old, and taking it away: a few rows at a time, oldest first, from a place where an earlier batch ended.
//!
//! Nothing goes that is unfinished or that something else still needs; each text says what that is. A crash in the middle leaves rows for the next sweep; two
//! replicas that sweep at once take different rows or find them gone.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::domain::time::Timestamp;
use uuid::Uuid;

/// A text that deletes at most $3 rows of `$table` which are older than $2 and not younger than $1, passing over the first $4; answers key and time of each.
/// On PostgreSQL a row that another replica is deleting is passed over.
macro_rules! delete {
    ($table:literal, $key:literal, $time:literal, $only:literal) => {
        Sql::each(
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE ",
                $key,
                " IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE ",
                $time,
                " >= $1 AND ",
                $time,
                " < $2 ",
                $only,
                " ORDER BY ",
                $time,
                " LIMIT $3 OFFSET $4) RETURNING ",
                $key,
                ", ",
                $time
            ),
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE ",
                $key,
                " IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE ",
                $time,
                " >= $1 AND ",
                $time,
                " < $2 ",
                $only,
                " ORDER BY ",
                $time,
                " LIMIT $3 OFFSET $4 FOR UPDATE SKIP LOCKED) RETURNING ",
                $key,
                ", ",
                $time
            ),
        )
    };
}

// Attempts, checkpoints, callbacks and owed answers go with their task. It stays while it is active (there is no finished_us then), while its dead letter is
// open (a replay needs it; answers about an agenda are not replayed and go with it), while an idempotency key answers with it, and while its end has still to
// be told to somebody. Protocols outlive their tasks.
const TASKS: Sql = delete!(
    "task",
    "id",
    "finished_us",
    "AND NOT EXISTS (SELECT 1 FROM dead_letter WHERE dead_letter.task_id = task.id AND replayed_us IS NULL AND dismissed_us IS NULL \
       AND reason NOT LIKE 'agenda-%') \
     AND NOT EXISTS (SELECT 1 FROM idempotency_key WHERE idempotency_key.task_id = task.id AND (expires_us IS NULL OR expires_us >= $5)) \
     AND NOT EXISTS (SELECT 1 FROM event JOIN delivery ON delivery.event_id = event.id \
       WHERE event.task_id = task.id AND delivered_us IS NULL AND next_us IS NOT NULL)"
);
// A FAILED task has a dead letter, so what is left of them goes in the same transaction.
const DEAD_LETTERS_OF_TASKS: Sql = Sql::each(
    "DELETE FROM dead_letter WHERE task_id IN (SELECT unhex(value) FROM json_each($1))",
    "DELETE FROM dead_letter WHERE task_id = ANY($1)",
);
// Closed ones of tasks that live on; an open one is never taken from its task.
const DEAD_LETTERS: Sql = delete!("dead_letter", "id", "failed_us", "AND (replayed_us < $2 OR dismissed_us < $2)");
const OUTBOX: Sql = delete!("outbox", "message_id", "published_us", "");
// What is sent again because nobody noted that it was sent must still be known as a duplicate.
const INBOX: Sql = delete!(
    "inbox",
    "message_id",
    "received_us",
    "AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.message_id = inbox.message_id AND published_us IS NULL)"
);
// Deliveries go with their event. One without a position is not yet told to anybody.
const EVENTS: Sql = delete!(
    "event",
    "id",
    "created_us",
    "AND position IS NOT NULL AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id AND delivered_us IS NULL AND next_us IS NOT NULL)"
);
const STEPS: Sql =
    delete!("step_cache", "key", "used_us", "AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.key = step_cache.key)");
const IDEMPOTENCY_KEYS: Sql = Sql::each(
    "DELETE FROM idempotency_key WHERE (scope, key) IN (SELECT scope, key FROM idempotency_key WHERE expires_us >= $1 AND expires_us < $2 \
     ORDER BY expires_us LIMIT $3 OFFSET $4) RETURNING expires_us",
    "DELETE FROM idempotency_key WHERE (scope, key) IN (SELECT scope, key FROM idempotency_key WHERE expires_us >= $1 AND expires_us < $2 \
     ORDER BY expires_us LIMIT $3 OFFSET $4 FOR UPDATE SKIP LOCKED) AND expires_us < $2 RETURNING expires_us",
);
const LEGACY_CALLS: Sql = Sql::same("DELETE FROM legacy_call WHERE day < $1");

pub const ALL: &[(&str, Sql)] = &[
    ("retention::tasks", TASKS),
    ("retention::dead_letters_of_tasks", DEAD_LETTERS_OF_TASKS),
    ("retention::dead_letters", DEAD_LETTERS),
    ("retention::outbox", OUTBOX),
    ("retention::inbox", INBOX),
    ("retention::events", EVENTS),
    ("retention::steps", STEPS),
    ("retention::idempotency_keys", IDEMPOTENCY_KEYS),
    ("retention::legacy_calls", LEGACY_CALLS),
];

/// What grows old by the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aging {
    Tasks,
    DeadLetters,
    Outbox,
    Inbox,
    Events,
    IdempotencyKeys,
    Steps,
}

impl Aging {
    pub const ALL: [Self; 7] =
        [Self::Tasks, Self::DeadLetters, Self::Outbox, Self::Inbox, Self::Events, Self::IdempotencyKeys, Self::Steps];

    /// Its name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::DeadLetters => "dead_letters",
            Self::Outbox => "outbox",
            Self::Inbox => "inbox",
            Self::Events => "events",
            Self::IdempotencyKeys => "idempotency_keys",
            Self::Steps => "steps",
        }
    }
}

/// Which rows a batch may take.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Where the batch before ended.
    pub from: Timestamp,
    /// Older than this is too old.
    pub before: Timestamp,
    pub limit: usize,
    /// Rows at the beginning that could not be deleted.
    pub pass_over: usize,
    pub now: Timestamp,
}

/// What a batch took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    pub rows: usize,
    /// Where the next batch goes on.
    pub next: Timestamp,
}

/// Deletes one batch.
pub async fn delete(tx: &mut Tx<'_>, what: Aging, batch: Batch) -> Result<Deleted> {
    let times = match what {
        Aging::Tasks => {
            let tasks: Vec<(Uuid, i64)> = with_tx!(&mut *tx, TASKS, |connection, sql| sqlx::query_as::<_, (Uuid, i64)>(sql)
                .bind(batch.from.as_micros())
                .bind(batch.before.as_micros())
                .bind(count(batch.limit))
                .bind(count(batch.pass_over))
                .bind(batch.now.as_micros())
                .fetch_all(connection)
                .await)?;
            let ids: super::IdList = tasks.iter().map(|(id, _)| *id).collect();
            if !ids.is_empty() {
                with_tx!(tx, DEAD_LETTERS_OF_TASKS, |connection, sql| sqlx::query(sql).bind(ids).execute(connection).await.map(|_| ()))?;
            }
            tasks.into_iter().map(|(_, time)| time).collect()
        }
        Aging::DeadLetters => aged(tx, DEAD_LETTERS, batch).await?,
        Aging::Outbox => aged(tx, OUTBOX, batch).await?,
        Aging::Inbox => aged(tx, INBOX, batch).await?,
        Aging::Events => aged(tx, EVENTS, batch).await?,
        Aging::Steps => aged(tx, STEPS, batch).await?,
        Aging::IdempotencyKeys => aged(tx, IDEMPOTENCY_KEYS, batch).await?,
    };
    let next = times.iter().max().map_or(batch.from, |last| Timestamp::from_micros(*last));
    Ok(Deleted { rows: times.len(), next })
}

/// The times of what was deleted.
async fn aged(tx: &mut Tx<'_>, text: Sql, batch: Batch) -> Result<Vec<i64>> {
    use sqlx::Row as _;
    let times: std::result::Result<Vec<i64>, sqlx::Error> = with_tx!(tx, text, |connection, sql| sqlx::query(sql)
        .bind(batch.from.as_micros())
        .bind(batch.before.as_micros())
        .bind(count(batch.limit))
        .bind(count(batch.pass_over))
        .fetch_all(connection)
        .await
        .map(|rows| rows.iter().map(|row| row.try_get(row.len() - 1)).collect()))?;
    Ok(times?)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Deletes what was counted before `day`; answers how many rows.
pub async fn delete_legacy_calls(tx: &mut Tx<'_>, day: &str) -> Result<u64> {
    let rows = with_tx!(tx, LEGACY_CALLS, |connection, sql| sqlx::query(sql)
        .bind(day)
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows)
}
