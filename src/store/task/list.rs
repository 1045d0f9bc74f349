//! Lists of tasks, newest first. One text per index, so that a list stays as fast with a million finished rows as with none.

use super::row::{TaskRow, columns};
use crate::{
    domain::{
        cursor::Cursor,
        ids::AgendaId,
        task::{Kind, Status, Task},
        time::Timestamp,
    },
    store::{Result, Sql, Tx, with_tx},
};
use uuid::Uuid;

macro_rules! list {
    ($first:literal) => {
        Sql::same(concat!(
            "SELECT ",
            columns!(),
            " FROM task WHERE ",
            $first,
            " AND (status = $1 OR $1 IS NULL) AND (kind = $2 OR $2 IS NULL) AND (agenda_id = $3 OR $3 IS NULL) \
             AND (caller = $4 OR $4 IS NULL) AND created_us >= $5 AND created_us < $6 AND (created_us, id) < ($7, $8) \
             ORDER BY created_us DESC, id DESC LIMIT $9"
        ))
    };
}
const OF_AGENDA: Sql = list!("agenda_id = $3");
const OF_CALLER: Sql = list!("caller = $4");
const WITH_STATUS: Sql = list!("status = $1");
const EVERY: Sql = list!("1 = 1");

pub const ALL: &[(&str, Sql)] = &[
    ("task::list of agenda", OF_AGENDA),
    ("task::list of caller", OF_CALLER),
    ("task::list with status", WITH_STATUS),
    ("task::list", EVERY),
];

/// Which tasks a list is to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    pub status: Option<Status>,
    pub kind: Option<Kind>,
    pub agenda_id: Option<AgendaId>,
    pub caller: Option<String>,
    /// Created at or after.
    pub from: Option<Timestamp>,
    /// Created before.
    pub to: Option<Timestamp>,
}

/// At most `limit` tasks after `cursor`, newest first.
pub async fn list(tx: &mut Tx<'_>, filter: &TaskFilter, cursor: Option<Cursor>, limit: usize) -> Result<Vec<Task>> {
    let text = match filter {
        TaskFilter { agenda_id: Some(_), .. } => OF_AGENDA,
        TaskFilter { caller: Some(_), .. } => OF_CALLER,
        TaskFilter { status: Some(_), .. } => WITH_STATUS,
        _ => EVERY,
    };
    let (before, before_id) = cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_micros(), cursor.id));
    with_tx!(tx, text, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(filter.status.map(Status::as_str))
        .bind(filter.kind.map(Kind::as_str))
        .bind(filter.agenda_id.as_ref().map(AgendaId::as_str))
        .bind(filter.caller.as_deref())
        .bind(filter.from.map_or(i64::MIN, Timestamp::as_micros))
        .bind(filter.to.map_or(i64::MAX, Timestamp::as_micros))
        .bind(before)
        .bind(before_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?
    .into_iter()
    .map(Task::try_from)
    .collect()
}
