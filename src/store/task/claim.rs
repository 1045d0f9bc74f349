//! Taking tasks, holding them, and finding those whose holder is gone.

use super::row::{TaskRow, columns};
use crate::{
    domain::{
        ids::{LeaseToken, TaskId, WorkerId},
        task::{Kind, Task},
        time::Timestamp,
    },
    store::{IdList, Result, Sql, Tx, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

// Two kinds exist; one that this process has no executor for is left to a process that has.
macro_rules! due {
    ($from:literal) => {
        concat!(
            "SELECT id, next_attempt_us FROM ",
            $from,
            " WHERE status = 'PENDING' AND next_attempt_us <= $1 AND (next_attempt_us, id) > ($5, $6) AND (kind = $3 OR kind = $4) \
             ORDER BY next_attempt_us, id LIMIT $2"
        )
    };
}
// Left to itself SQLite takes the index of all statuses, and sorts everything that is PENDING at each look.
const DUE: Sql = Sql::each(due!("task INDEXED BY task_due"), due!("task"));
// The pluses, and on PostgreSQL `|| ''`, keep the database from walking through everything that is PENDING for a few tasks that are wanted: its statistics are
// of an hour at which there may have been none. Locked in the order of ids on PostgreSQL, so that replicas which look at the same tasks wait for each other
// instead of deadlocking.
const CLAIM: Sql = Sql::each(
    concat!(
        "UPDATE task SET status = 'IN_PROGRESS', claim_no = claim_no + 1, attempt_no = attempt_no + 1, \
         lease_token = unhex(wanted.value ->> 'token'), lease_until_us = $2, worker_id = $3, started_us = COALESCE(started_us, $4), \
         revision = revision + 1 FROM json_each($1) AS wanted \
         WHERE task.id = unhex(wanted.value ->> 'task') AND +status = 'PENDING' AND +next_attempt_us <= $4 AND (kind = $5 OR kind = $6) \
         RETURNING ",
        columns!(),
        ", lease_token"
    ),
    concat!(
        "UPDATE task SET status = 'IN_PROGRESS', claim_no = claim_no + 1, attempt_no = attempt_no + 1, lease_token = wanted.token, \
         lease_until_us = $2, worker_id = $3, started_us = COALESCE(started_us, $4), revision = revision + 1 \
         FROM (SELECT rows.* FROM json_to_recordset(CAST($1 AS json)) AS rows (task uuid, token uuid) \
           JOIN task AS due ON due.id = rows.task \
           WHERE due.status || '' = 'PENDING' AND due.next_attempt_us <= $4 AND (due.kind = $5 OR due.kind = $6) \
           ORDER BY due.id FOR UPDATE OF due) AS wanted \
         WHERE task.id = wanted.task AND task.status || '' = 'PENDING' AND task.next_attempt_us <= $4 RETURNING ",
        columns!(),
        ", lease_token"
    ),
);
// By id, and locked on PostgreSQL: the commit whose answer was lost may be under way still, and holds the rows until it is over. Asking for the token here
// would find the rows as they were before it, and wait for none of them.
const HELD: Sql = Sql::each(
    concat!(
        "SELECT ",
        columns!(),
        ", lease_token FROM task WHERE id IN (SELECT unhex(value) FROM json_each($1)) AND lease_token IS NOT NULL"
    ),
    concat!("SELECT ", columns!(), ", lease_token FROM task WHERE id = ANY($1) ORDER BY id FOR UPDATE"),
);
// Locked on PostgreSQL: a renewal that comes between this look and the rescue would otherwise lose to it.
const LOCK_EXPIRED: Sql = Sql::each(
    concat!("SELECT ", columns!(), " FROM task WHERE status = 'IN_PROGRESS' AND id = $1 AND lease_token = $2 AND lease_until_us < $3"),
    concat!(
        "SELECT ",
        columns!(),
        " FROM task WHERE status = 'IN_PROGRESS' AND id = $1 AND lease_token = $2 AND lease_until_us < $3 FOR UPDATE"
    ),
);
const RENEW: Sql = Sql::each(
    "UPDATE task SET lease_until_us = $3 \
     WHERE id IN (SELECT unhex(value) FROM json_each($1)) AND lease_token IN (SELECT unhex(value) FROM json_each($2)) \
     AND +status = 'IN_PROGRESS' RETURNING lease_token",
    "UPDATE task SET lease_until_us = $3 \
     WHERE id IN (SELECT id FROM task WHERE id = ANY($1) AND lease_token = ANY($2) AND status || '' = 'IN_PROGRESS' ORDER BY id FOR UPDATE) \
     AND lease_token = ANY($2) AND status || '' = 'IN_PROGRESS' RETURNING lease_token",
);
// Only what the rescue needs: a row with a damaged column must not stop the sweep for all others.
macro_rules! expired {
    ($from:literal) => {
        concat!(
            "SELECT id, lease_token, lease_until_us FROM ",
            $from,
            " WHERE status = 'IN_PROGRESS' AND lease_until_us < $1 AND (lease_until_us, id) > ($2, $3) ORDER BY lease_until_us, id LIMIT $4"
        )
    };
}
const EXPIRED: Sql = Sql::each(expired!("task INDEXED BY task_lease"), expired!("task"));

pub const ALL: &[(&str, Sql)] = &[
    ("task::due", DUE),
    ("task::claim", CLAIM),
    ("task::held", HELD),
    ("task::renew", RENEW),
    ("task::expired", EXPIRED),
    ("task::lock_expired", LOCK_EXPIRED),
];

/// Who claims, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pub now: Timestamp,
    pub until: Timestamp,
    pub worker_id: WorkerId,
    /// The kinds that this process can run: one of them twice if it is one only.
    pub kinds: [Kind; 2],
}

/// A task whose lease ran out.
#[derive(Debug, Clone, Copy)]
pub struct Expired {
    pub id: TaskId,
    pub token: LeaseToken,
    pub until: Timestamp,
}

/// A task that is due, and since when: the place from which the next look goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub id: TaskId,
    pub since: Timestamp,
}

/// PENDING tasks that are due, longest due first, after `after`. Nothing is locked: the claim itself is guarded.
pub async fn due(tx: &mut Tx<'_>, now: Timestamp, after: Option<Due>, kinds: [Kind; 2], limit: usize) -> Result<Vec<Due>> {
    let (after_us, after_id) = after.map_or((i64::MIN, Uuid::nil()), |due| (due.since.as_micros(), due.id.0));
    let rows: Vec<(Uuid, i64)> = with_tx!(tx, DUE, |connection, sql| sqlx::query_as::<_, (Uuid, i64)>(sql)
        .bind(now.as_micros())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(kinds[0].as_str())
        .bind(kinds[1].as_str())
        .bind(after_us)
        .bind(after_id)
        .fetch_all(connection)
        .await)?;
    Ok(rows.into_iter().map(|(id, since)| Due { id: TaskId(id), since: Timestamp::from_micros(since) }).collect())
}

/// Takes those tasks that are PENDING and due, each under its token; answers them with the token, in no order. The others somebody has, or they ended, or they
/// are not due. The tokens are made beforehand, so that claims whose commit's outcome is unknown can be looked up.
pub async fn claim(tx: &mut Tx<'_>, wanted: &[(TaskId, LeaseToken)], claim: &Claim) -> Result<Vec<(LeaseToken, Task)>> {
    #[derive(Serialize)]
    struct Row {
        task: String,
        token: String,
    }
    let list: Vec<Row> = wanted.iter().map(|(task, token)| Row { task: rows::hex(task.0), token: rows::hex(token.0) }).collect();
    with_tx!(tx, CLAIM, |connection, sql| sqlx::query_as::<_, HeldRow>(sql)
        .bind(rows::json(&list))
        .bind(claim.until.as_micros())
        .bind(claim.worker_id.0)
        .bind(claim.now.as_micros())
        .bind(claim.kinds[0].as_str())
        .bind(claim.kinds[1].as_str())
        .fetch_all(connection)
        .await)?
    .into_iter()
    .map(|row| Ok((LeaseToken(row.lease_token), row.task.try_into()?)))
    .collect()
}

#[derive(sqlx::FromRow)]
struct HeldRow {
    #[sqlx(flatten)]
    task: TaskRow,
    lease_token: Uuid,
}

#[derive(sqlx::FromRow)]
struct MaybeHeldRow {
    #[sqlx(flatten)]
    task: TaskRow,
    lease_token: Option<Uuid>,
}

/// Those of these tasks that are held under these tokens: how a claim whose commit's outcome is unknown finds out. Waits for a commit that is under way.
pub async fn held(tx: &mut Tx<'_>, leases: &[(TaskId, LeaseToken)]) -> Result<Vec<(LeaseToken, Task)>> {
    let ids: IdList = leases.iter().map(|(id, _)| id.0).collect();
    let rows = with_tx!(tx, HELD, |connection, sql| sqlx::query_as::<_, MaybeHeldRow>(sql).bind(ids).fetch_all(connection).await)?;
    let held = rows.into_iter().filter_map(|row| {
        let token = LeaseToken(row.lease_token?);
        leases.iter().any(|(_, ours)| *ours == token).then(|| Ok((token, row.task.try_into()?)))
    });
    held.collect()
}

/// The task of a lease that has run out, locked until the transaction ends; `None`: it was renewed, or is somebody else's.
pub async fn lock_expired(tx: &mut Tx<'_>, expired: &Expired, now: Timestamp) -> Result<Option<Task>> {
    with_tx!(tx, LOCK_EXPIRED, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(expired.id.0)
        .bind(expired.token.0)
        .bind(now.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

/// Renews leases and says which of them still exist.
pub async fn renew(tx: &mut Tx<'_>, leases: &[(TaskId, LeaseToken)], until: Timestamp) -> Result<Vec<LeaseToken>> {
    let ids: IdList = leases.iter().map(|(id, _)| id.0).collect();
    let tokens: IdList = leases.iter().map(|(_, token)| token.0).collect();
    let rows: Vec<(Uuid,)> = with_tx!(tx, RENEW, |connection, sql| sqlx::query_as::<_, (Uuid,)>(sql)
        .bind(ids)
        .bind(tokens)
        .bind(until.as_micros())
        .fetch_all(connection)
        .await)?;
    Ok(rows.into_iter().map(|(token,)| LeaseToken(token)).collect())
}

/// Tasks whose lease ran out before `now`, in the order of expiry, after `after`.
pub async fn expired(tx: &mut Tx<'_>, now: Timestamp, after: Option<&Expired>, limit: usize) -> Result<Vec<Expired>> {
    let (after_until, after_id) = after.map_or((i64::MIN, Uuid::nil()), |expired| (expired.until.as_micros(), expired.id.0));
    let rows: Vec<(Uuid, Uuid, i64)> = with_tx!(tx, EXPIRED, |connection, sql| sqlx::query_as::<_, (Uuid, Uuid, i64)>(sql)
        .bind(now.as_micros())
        .bind(after_until)
        .bind(after_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?;
    Ok(rows
        .into_iter()
        .map(|(id, token, until)| Expired { id: TaskId(id), token: LeaseToken(token), until: Timestamp::from_micros(until) })
        .collect())
}
