//! Dead letters: a FAILED task has exactly one that is open (a unique index keeps it so).

use crate::{
    domain::{
        cursor::Cursor,
        dead_letter::DeadLetter,
        failure::{Failure, FailureCode},
        ids::{AgendaId, DeadLetterId, TaskId},
        task::{Phase, Task},
        time::Timestamp,
    },
    store::{Error, Result, Sql, Tx, field::Fields, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

const INSERT: Sql = Sql::each(
    "INSERT INTO dead_letter (id, task_id, agenda_id, reason, message, attempts, phase, failed_us) \
     SELECT unhex(value ->> 'id'), unhex(value ->> 'task_id'), value ->> 'agenda_id', value ->> 'reason', value ->> 'message', \
     value ->> 'attempts', value ->> 'phase', value ->> 'failed_us' FROM json_each($1)",
    "INSERT INTO dead_letter (id, task_id, agenda_id, reason, message, attempts, phase, failed_us) \
     SELECT id, task_id, agenda_id, reason, message, attempts, phase, failed_us FROM json_to_recordset(CAST($1 AS json)) \
     AS rows (id uuid, task_id uuid, agenda_id text, reason text, message text, attempts bigint, phase text, failed_us bigint)",
);
macro_rules! columns {
    () => {
        "id, task_id, agenda_id, reason, message, attempts, phase, failed_us, replayed_us, dismissed_us"
    };
}
const FIND: Sql = Sql::same(concat!("SELECT ", columns!(), " FROM dead_letter WHERE id = $1"));
// A dismissed one may be replayed all the same: somebody changed their mind.
const MARK_REPLAYED: Sql = Sql::same("UPDATE dead_letter SET replayed_us = $2 WHERE id = $1 AND replayed_us IS NULL");
const DISMISS: Sql = Sql::same("UPDATE dead_letter SET dismissed_us = $2 WHERE id = $1 AND replayed_us IS NULL AND dismissed_us IS NULL");
macro_rules! matching {
    () => {
        " FROM dead_letter WHERE (reason = $1 OR $1 IS NULL) AND (agenda_id = $2 OR $2 IS NULL) AND (task_id = $3 OR $3 IS NULL) \
         AND ($4 = 0 OR (replayed_us IS NULL AND dismissed_us IS NULL)) AND failed_us >= $5 AND failed_us < $6"
    };
}
const LIST: Sql =
    Sql::same(concat!("SELECT ", columns!(), matching!(), " AND (failed_us, id) < ($7, $8) ORDER BY failed_us DESC, id DESC LIMIT $9"));
const COUNT: Sql = Sql::same(concat!("SELECT COUNT(*)", matching!()));
const OPEN_BY_REASON: Sql =
    Sql::same("SELECT reason, COUNT(*) FROM dead_letter WHERE replayed_us IS NULL AND dismissed_us IS NULL GROUP BY reason");

pub const ALL: &[(&str, Sql)] = &[
    ("dead_letter::insert", INSERT),
    ("dead_letter::find", FIND),
    ("dead_letter::mark_replayed", MARK_REPLAYED),
    ("dead_letter::dismiss", DISMISS),
    ("dead_letter::list", LIST),
    ("dead_letter::count", COUNT),
    ("dead_letter::open_by_reason", OPEN_BY_REASON),
];

/// Which dead letters a list is to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeadLetterFilter {
    pub reason: Option<FailureCode>,
    pub agenda_id: Option<AgendaId>,
    pub task_id: Option<TaskId>,
    /// Neither replayed nor dismissed.
    pub open_only: bool,
    /// Failed at or after.
    pub from: Option<Timestamp>,
    /// Failed before.
    pub to: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct DeadLetterRow {
    id: Uuid,
    task_id: Uuid,
    agenda_id: Option<String>,
    reason: String,
    message: String,
    attempts: i64,
    phase: Option<String>,
    failed_us: i64,
    replayed_us: Option<i64>,
    dismissed_us: Option<i64>,
}

impl TryFrom<DeadLetterRow> for DeadLetter {
    type Error = Error;

    fn try_from(row: DeadLetterRow) -> Result<Self> {
        let fields = Fields { table: "dead_letter", row: row.id };
        let known = FailureCode::ALL.into_iter().find(|code| code.as_str() == row.reason);
        Ok(Self {
            id: DeadLetterId(row.id),
            task_id: TaskId(row.task_id),
            agenda_id: fields.fit("agenda_id", row.agenda_id.map(TryInto::try_into).transpose())?,
            reason: fields.fit("reason", known.ok_or_else(|| format!("{:?} is not in the catalogue", row.reason)))?,
            message: row.message,
            attempts: fields.fit("attempts", row.attempts.try_into())?,
            phase: fields.fit("phase", row.phase.map(|phase| phase.parse()).transpose())?,
            failed_at: Timestamp::from_micros(row.failed_us),
            replayed_at: row.replayed_us.map(Timestamp::from_micros),
            dismissed_at: row.dismissed_us.map(Timestamp::from_micros),
        })
    }
}

/// A dead letter that is to be stored: its task has just failed for good.
#[derive(Debug, Clone, Copy)]
pub struct NewDeadLetter<'a> {
    pub id: DeadLetterId,
    pub task: &'a Task,
    pub failure: &'a Failure,
    pub at: Timestamp,
}

pub async fn insert(tx: &mut Tx<'_>, letters: &[NewDeadLetter<'_>]) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: String,
        task_id: String,
        agenda_id: Option<&'a str>,
        reason: &'static str,
        message: &'a str,
        attempts: u32,
        phase: Option<&'static str>,
        failed_us: i64,
    }
    fn row<'a>(letter: &NewDeadLetter<'a>) -> Row<'a> {
        let NewDeadLetter { id, task, failure, at } = letter;
        Row {
            id: rows::hex(id.0),
            task_id: rows::hex(task.id.0),
            agenda_id: task.agenda_id.as_ref().map(AgendaId::as_str),
            reason: failure.code.as_str(),
            message: &failure.message,
            attempts: task.attempt_no,
            phase: failure.phase.or(task.phase).map(Phase::as_str),
            failed_us: at.as_micros(),
        }
    }
    let list: Vec<Row<'_>> = letters.iter().map(row).collect();
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
    Ok(())
}

pub async fn find(tx: &mut Tx<'_>, id: DeadLetterId) -> Result<Option<DeadLetter>> {
    with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, DeadLetterRow>(sql).bind(id.0).fetch_optional(connection).await)?
        .map(DeadLetter::try_from)
        .transpose()
}

/// Closes a dead letter because its task is replayed; `false`: it was replayed before.
pub async fn mark_replayed(tx: &mut Tx<'_>, id: DeadLetterId, now: Timestamp) -> Result<bool> {
    let rows = with_tx!(tx, MARK_REPLAYED, |connection, sql| sqlx::query(sql)
        .bind(id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// Closes an open dead letter without a replay; `false`: it was not open any more.
pub async fn dismiss(tx: &mut Tx<'_>, id: DeadLetterId, now: Timestamp) -> Result<bool> {
    let rows = with_tx!(tx, DISMISS, |connection, sql| sqlx::query(sql)
        .bind(id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// At most `limit` dead letters after `cursor`, newest first.
pub async fn list(tx: &mut Tx<'_>, filter: &DeadLetterFilter, cursor: Option<Cursor>, limit: usize) -> Result<Vec<DeadLetter>> {
    let (before, before_id) = cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_micros(), cursor.id));
    with_tx!(tx, LIST, |connection, sql| sqlx::query_as::<_, DeadLetterRow>(sql)
        .bind(filter.reason.map(FailureCode::as_str))
        .bind(filter.agenda_id.as_ref().map(AgendaId::as_str))
        .bind(filter.task_id.map(|task| task.0))
        .bind(i64::from(filter.open_only))
        .bind(filter.from.map_or(i64::MIN, Timestamp::as_micros))
        .bind(filter.to.map_or(i64::MAX, Timestamp::as_micros))
        .bind(before)
        .bind(before_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?
    .into_iter()
    .map(DeadLetter::try_from)
    .collect()
}

/// How many there are.
pub async fn count(tx: &mut Tx<'_>, filter: &DeadLetterFilter) -> Result<u64> {
    let (count,): (i64,) = with_tx!(tx, COUNT, |connection, sql| sqlx::query_as::<_, (i64,)>(sql)
        .bind(filter.reason.map(FailureCode::as_str))
        .bind(filter.agenda_id.as_ref().map(AgendaId::as_str))
        .bind(filter.task_id.map(|task| task.0))
        .bind(i64::from(filter.open_only))
        .bind(filter.from.map_or(i64::MIN, Timestamp::as_micros))
        .bind(filter.to.map_or(i64::MAX, Timestamp::as_micros))
        .fetch_one(connection)
        .await)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// How many are open, by reason as stored.
pub async fn open_by_reason(tx: &mut Tx<'_>) -> Result<Vec<(String, u64)>> {
    let rows: Vec<(String, i64)> =
        with_tx!(tx, OPEN_BY_REASON, |connection, sql| sqlx::query_as::<_, (String, i64)>(sql).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(reason, count)| (reason, u64::try_from(count).unwrap_or(0))).collect())
}
