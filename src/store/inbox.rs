//! The record of messages already taken: the first insert wins, a second is dropped. Written in the transaction of the claim, so that a message counts as
//! taken exactly when its claim was tried.

use crate::{
    domain::{
        ids::{MessageId, TaskId},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, with_tx},
};

const INSERT: Sql =
    Sql::same("INSERT INTO inbox (message_id, task_id, received_us) VALUES ($1, $2, $3) ON CONFLICT (message_id) DO NOTHING");
const INSERT_OF_TASK: Sql = Sql::same(
    "INSERT INTO inbox (message_id, task_id, received_us) SELECT message_id, task_id, $2 FROM outbox WHERE task_id = $1 \
     ON CONFLICT (message_id) DO NOTHING",
);

pub const ALL: &[(&str, Sql)] = &[("inbox::insert", INSERT), ("inbox::insert_of_task", INSERT_OF_TASK)];

/// Whether the message is new; if not, it is a duplicate and to be dropped.
pub async fn insert(tx: &mut Tx<'_>, message_id: MessageId, task_id: TaskId, now: Timestamp) -> Result<bool> {
    let rows = with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(message_id.0)
        .bind(task_id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// Notes every message of a task that was claimed without one: one that comes late is then a duplicate.
pub async fn insert_of_task(tx: &mut Tx<'_>, task_id: TaskId, now: Timestamp) -> Result<()> {
    with_tx!(tx, INSERT_OF_TASK, |connection, sql| sqlx::query(sql)
        .bind(task_id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}
