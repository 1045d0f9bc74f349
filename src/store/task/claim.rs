//! Taking tasks, holding them, and finding those whose holder is gone.

use super::row::{TaskRow, columns};
use crate::{
    domain::{
        ids::{LeaseToken, TaskId, WorkerId},
        task::{Kind, Task},
        time::Timestamp,
    },
    store::{IdList, Result, Sql, Tx, with_tx},
};
use uuid::Uuid;

// Two kinds exist; one that this process has no executor for is left to a process that has.
const DUE: Sql = Sql::same(
    "SELECT id FROM task WHERE status = 'PENDING' AND next_attempt_us <= $1 AND (kind = $3 OR kind = $4) \
     ORDER BY next_attempt_us, id LIMIT $2",
);
const CLAIM: Sql = Sql::same(concat!(
    "UPDATE task SET status = 'IN_PROGRESS', claim_no = claim_no + 1, attempt_no = attempt_no + 1, lease_token = $2, lease_until_us = $3, \
     worker_id = $4, started_us = COALESCE(started_us, $5), revision = revision + 1 \
     WHERE id = $1 AND status = 'PENDING' AND next_attempt_us <= $5 AND (kind = $6 OR kind = $7) RETURNING ",
    columns!()
));
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
     AND status = 'IN_PROGRESS' RETURNING lease_token",
    "UPDATE task SET lease_until_us = $3 WHERE id = ANY($1) AND lease_token = ANY($2) AND status = 'IN_PROGRESS' RETURNING lease_token",
);
// Only what the rescue needs: a row with a damaged column must not stop the sweep for all others.
const EXPIRED: Sql = Sql::same(
    "SELECT id, lease_token, lease_until_us FROM task \
     WHERE status = 'IN_PROGRESS' AND lease_until_us < $1 AND (lease_until_us, id) > ($2, $3) ORDER BY lease_until_us, id LIMIT $4",
);

pub const ALL: &[(&str, Sql)] = &[
    ("task::due", DUE),
    ("task::claim", CLAIM),
    ("task::held", HELD),
    ("task::renew", RENEW),
    ("task::expired", EXPIRED),
    ("task::lock_expired", LOCK_EXPIRED),
];

/// One claim: the token is made beforehand, so that a claim whose commit's outcome is unknown can be looked up.
#[derive(Debug, Clone)]
pub struct Claim {
    pub token: LeaseToken,
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

/// PENDING tasks that are due, longest due first. Nothing is locked: the claim itself is guarded.
pub async fn due(tx: &mut Tx<'_>, now: Timestamp, kinds: [Kind; 2], limit: usize) -> Result<Vec<TaskId>> {
    let rows: Vec<(Uuid,)> = with_tx!(tx, DUE, |connection, sql| sqlx::query_as::<_, (Uuid,)>(sql)
        .bind(now.as_micros())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(kinds[0].as_str())
        .bind(kinds[1].as_str())
        .fetch_all(connection)
        .await)?;
    Ok(rows.into_iter().map(|(id,)| TaskId(id)).collect())
}

/// Takes a task that is PENDING and due; `None`: somebody has it, it ended, or it is not due.
pub async fn claim(tx: &mut Tx<'_>, id: TaskId, claim: &Claim) -> Result<Option<Task>> {
    with_tx!(tx, CLAIM, |connection, sql| sqlx::query_as::<_, TaskRow>(sql)
        .bind(id.0)
        .bind(claim.token.0)
        .bind(claim.until.as_micros())
        .bind(claim.worker_id.0)
        .bind(claim.now.as_micros())
        .bind(claim.kinds[0].as_str())
        .bind(claim.kinds[1].as_str())
        .fetch_optional(connection)
        .await)?
    .map(Task::try_from)
    .transpose()
}

#[derive(sqlx::FromRow)]
struct HeldRow {
    #[sqlx(flatten)]
    task: TaskRow,
    lease_token: Option<Uuid>,
}

/// Those of these tasks that are held under these tokens: how a claim whose commit's outcome is unknown finds out. Waits for a commit that is under way.
pub async fn held(tx: &mut Tx<'_>, leases: &[(TaskId, LeaseToken)]) -> Result<Vec<(LeaseToken, Task)>> {
    let ids: IdList = leases.iter().map(|(id, _)| id.0).collect();
    let rows = with_tx!(tx, HELD, |connection, sql| sqlx::query_as::<_, HeldRow>(sql).bind(ids).fetch_all(connection).await)?;
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
