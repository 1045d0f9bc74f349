//! The record of messages already taken: the first insert wins, a second is dropped. Written in the transaction of the claim, so that a message counts as
//! taken exactly when its claim was tried.

use crate::{
    domain::{
        ids::{MessageId, TaskId},
        time::Timestamp,
    },
    store::{IdList, Result, Sql, Tx, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

// `WHERE true`: SQLite would take ON for the beginning of a join.
const INSERT: Sql = Sql::each(
    "INSERT INTO inbox (message_id, task_id, received_us) \
     SELECT unhex(value ->> 'message_id'), unhex(value ->> 'task_id'), $2 FROM json_each($1) WHERE true \
     ON CONFLICT (message_id) DO NOTHING RETURNING message_id",
    "INSERT INTO inbox (message_id, task_id, received_us) \
     SELECT message_id, task_id, $2 FROM json_to_recordset(CAST($1 AS json)) AS rows (message_id uuid, task_id uuid) \
     ON CONFLICT (message_id) DO NOTHING RETURNING message_id",
);
const INSERT_OF_TASKS: Sql = Sql::each(
    "INSERT INTO inbox (message_id, task_id, received_us) \
     SELECT message_id, task_id, $2 FROM outbox WHERE task_id IN (SELECT unhex(value) FROM json_each($1)) \
     ON CONFLICT (message_id) DO NOTHING",
    "INSERT INTO inbox (message_id, task_id, received_us) SELECT message_id, task_id, $2 FROM outbox WHERE task_id = ANY($1) \
     ORDER BY message_id ON CONFLICT (message_id) DO NOTHING",
);

pub const ALL: &[(&str, Sql)] = &[("inbox::insert", INSERT), ("inbox::insert_of_tasks", INSERT_OF_TASKS)];

/// Which of the messages are new; the others are duplicates and to be dropped. They are noted in the order given, so that two who note the same ones wait for
/// each other instead of deadlocking.
pub async fn insert(tx: &mut Tx<'_>, messages: &[(MessageId, TaskId)], now: Timestamp) -> Result<Vec<MessageId>> {
    #[derive(Serialize)]
    struct Row {
        message_id: String,
        task_id: String,
    }
    let list: Vec<Row> =
        messages.iter().map(|(message, task)| Row { message_id: rows::hex(message.0), task_id: rows::hex(task.0) }).collect();
    let new: Vec<(Uuid,)> = with_tx!(tx, INSERT, |connection, sql| sqlx::query_as::<_, (Uuid,)>(sql)
        .bind(rows::json(&list))
        .bind(now.as_micros())
        .fetch_all(connection)
        .await)?;
    Ok(new.into_iter().map(|(id,)| MessageId(id)).collect())
}

/// Notes every message of tasks that were claimed without one: one that comes late is then a duplicate.
pub async fn insert_of_tasks(tx: &mut Tx<'_>, tasks: &[TaskId], now: Timestamp) -> Result<()> {
    let tasks: IdList = tasks.iter().map(|id| id.0).collect();
    with_tx!(tx, INSERT_OF_TASKS, |connection, sql| sqlx::query(sql)
        .bind(tasks)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}
