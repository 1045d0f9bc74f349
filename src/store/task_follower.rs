//! Which callers beside the one that submitted it a task belongs to: those whose v1 call joined it. A caller that may see its own tasks only sees these too.

use super::{Result, Sql, Tx, protocol, task, tx::with_tx};
use crate::domain::{
    cursor::Cursor,
    ids::{AgendaId, TaskId},
    protocol::Protocol,
    task::Task,
};
use uuid::Uuid;

const NOTE: Sql = Sql::same("INSERT INTO task_follower (task_id, caller) VALUES ($1, $2) ON CONFLICT (task_id, caller) DO NOTHING");

const BELONGS: Sql = Sql::same(
    "SELECT 1 FROM task t WHERE t.id = $1
       AND (t.caller = $2 OR EXISTS (SELECT 1 FROM task_follower c WHERE c.task_id = t.id AND c.caller = $2))",
);

const TASKS_OF_AGENDA: Sql = Sql::same(
    "SELECT t.id FROM task t WHERE t.agenda_id = $1 AND t.kind = 'protocol'
       AND (t.caller = $2 OR EXISTS (SELECT 1 FROM task_follower c WHERE c.task_id = t.id AND c.caller = $2))
       AND (t.created_us, t.id) < ($3, $4)
     ORDER BY t.created_us DESC, t.id DESC LIMIT $5",
);

const VERSIONS_OF_AGENDA: Sql = Sql::same(
    "SELECT p.version FROM protocol p JOIN task t ON t.id = p.task_id WHERE p.agenda_id = $1 AND p.version < $3
       AND (t.caller = $2 OR EXISTS (SELECT 1 FROM task_follower c WHERE c.task_id = t.id AND c.caller = $2))
     ORDER BY p.version DESC LIMIT $4",
);

/// Every query of this file, for the test that prepares them all.
pub const ALL: &[(&str, Sql)] = &[
    ("task_follower::NOTE", NOTE),
    ("task_follower::BELONGS", BELONGS),
    ("task_follower::TASKS_OF_AGENDA", TASKS_OF_AGENDA),
    ("task_follower::VERSIONS_OF_AGENDA", VERSIONS_OF_AGENDA),
];

/// The task belongs to `caller`, too.
pub async fn note(tx: &mut Tx<'_>, task: TaskId, caller: &str) -> Result<()> {
    with_tx!(tx, NOTE, |connection, sql| sqlx::query(sql).bind(task.0).bind(caller).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Whether `caller` submitted or joined the task; not for a task that is gone.
pub async fn belongs(tx: &mut Tx<'_>, task: TaskId, caller: &str) -> Result<bool> {
    let row: Option<i32> =
        with_tx!(tx, BELONGS, |connection, sql| sqlx::query_scalar(sql).bind(task.0).bind(caller).fetch_optional(connection).await)?;
    Ok(row.is_some())
}

/// At most `limit` of the agenda's tasks that belong to `caller`, after `cursor`, newest first.
pub async fn tasks_of_agenda(tx: &mut Tx<'_>, agenda: &AgendaId, caller: &str, cursor: Option<Cursor>, limit: usize) -> Result<Vec<Task>> {
    let (before, before_id) = cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_micros(), cursor.id));
    let ids: Vec<Uuid> = with_tx!(tx, TASKS_OF_AGENDA, |connection, sql| sqlx::query_scalar(sql)
        .bind(agenda.as_str())
        .bind(caller)
        .bind(before)
        .bind(before_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?;
    let mut tasks = if ids.is_empty() { Vec::new() } else { task::find_many(tx, ids.into_iter().collect()).await? };
    tasks.sort_by_key(|task| std::cmp::Reverse((task.created_at, task.id)));
    Ok(tasks)
}

/// At most `limit` of the agenda's protocols whose task belongs to `caller`, newest version first; those below `before_version`, if given.
pub async fn protocols_of_agenda(
    tx: &mut Tx<'_>,
    agenda: &AgendaId,
    caller: &str,
    before_version: Option<u32>,
    limit: usize,
) -> Result<Vec<Protocol>> {
    let versions: Vec<i64> = with_tx!(tx, VERSIONS_OF_AGENDA, |connection, sql| sqlx::query_scalar(sql)
        .bind(agenda.as_str())
        .bind(caller)
        .bind(before_version.map_or(i64::MAX, i64::from))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?;
    let mut protocols = Vec::with_capacity(versions.len());
    for version in versions {
        let above = u32::try_from(version).ok().and_then(|version| version.checked_add(1));
        protocols.extend(protocol::of_agenda(tx, agenda, above, 1).await?);
    }
    Ok(protocols)
}
