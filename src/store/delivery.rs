//! Deliveries: one row for each event and sink, tried on its own schedule. Rows are taken by state and claim, as the outbox's are: a process that dies between a
//! try and its note costs a second try of the same event.

use crate::{
    domain::{
        cursor::Cursor,
        delivery::{Delivery, Sink, State},
        event::EventType,
        ids::{DeliveryId, EventId, TaskId},
        time::Timestamp,
    },
    store::{Error, IdList, Result, Sql, Tx, field::Fields, rows, with_tx},
};
use serde::Serialize;
use uuid::Uuid;

const INSERT: Sql = Sql::each(
    "INSERT INTO delivery (id, event_id, sink, lane, attempts, next_us, created_us) \
     SELECT unhex(value ->> 'id'), unhex(value ->> 'event_id'), value ->> 'sink', value ->> 'lane', 0, value ->> 'next_us', value ->> 'created_us' \
     FROM json_each($1) WHERE true ON CONFLICT (event_id, sink) DO NOTHING",
    "INSERT INTO delivery (id, event_id, sink, lane, attempts, next_us, created_us) \
     SELECT id, event_id, sink, lane, 0, next_us, created_us FROM json_to_recordset(CAST($1 AS json)) \
       AS rows (id uuid, event_id uuid, sink text, lane text, next_us bigint, created_us bigint) \
     ON CONFLICT (event_id, sink) DO NOTHING",
);
// From lane to lane over the index, however many rows wait in each.
const DUE_LANES: Sql = Sql::same(
    "WITH RECURSIVE lanes (lane) AS ( \
       SELECT MIN(lane) FROM delivery WHERE next_us IS NOT NULL \
       UNION ALL \
       SELECT (SELECT MIN(lane) FROM delivery WHERE next_us IS NOT NULL AND lane > lanes.lane) FROM lanes WHERE lanes.lane IS NOT NULL) \
     SELECT lane FROM lanes WHERE lane IS NOT NULL AND EXISTS ( \
       SELECT 1 FROM delivery WHERE delivery.lane = lanes.lane AND next_us IS NOT NULL AND next_us <= $1 \
       AND (claim_until_us IS NULL OR claim_until_us <= $1))",
);
const CLAIM: Sql = Sql::each(
    "UPDATE delivery SET claim_token = $1, claim_until_us = $2 WHERE id IN ( \
       SELECT id FROM delivery WHERE lane = $5 AND next_us IS NOT NULL AND next_us <= $3 \
       AND (claim_until_us IS NULL OR claim_until_us <= $3) ORDER BY next_us LIMIT $4) RETURNING id",
    "UPDATE delivery SET claim_token = $1, claim_until_us = $2 WHERE id IN ( \
       SELECT id FROM delivery WHERE lane = $5 AND next_us IS NOT NULL AND next_us <= $3 \
       AND (claim_until_us IS NULL OR claim_until_us <= $3) ORDER BY next_us LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING id",
);
const CLAIMED: Sql = Sql::each(
    "SELECT delivery.id, event_id, type, task_id, sink, lane, attempts, body FROM delivery JOIN event ON event.id = delivery.event_id \
     WHERE delivery.id IN (SELECT unhex(value) FROM json_each($1)) ORDER BY next_us, delivery.id",
    "SELECT delivery.id, event_id, type, task_id, sink, lane, attempts, body FROM delivery JOIN event ON event.id = delivery.event_id \
     WHERE delivery.id = ANY($1) ORDER BY next_us, delivery.id",
);
// Whoever has lost its claim notes nothing: another try is under way, and its end counts.
const SETTLE: Sql = Sql::each(
    "UPDATE delivery SET attempts = attempts + 1, last_status = tried.value ->> 'status', last_tried_us = tried.value ->> 'at', \
     next_us = tried.value ->> 'next_us', delivered_us = tried.value ->> 'delivered_us', claim_token = NULL, claim_until_us = NULL \
     FROM json_each($1) AS tried WHERE delivery.id = unhex(tried.value ->> 'id') AND delivery.claim_token = unhex(tried.value ->> 'token')",
    "UPDATE delivery SET attempts = attempts + 1, last_status = tried.status, last_tried_us = tried.at, next_us = tried.next_us, \
     delivered_us = tried.delivered_us, claim_token = NULL, claim_until_us = NULL \
     FROM json_to_recordset(CAST($1 AS json)) AS tried (id uuid, token uuid, status text, at bigint, next_us bigint, delivered_us bigint) \
     WHERE delivery.id = tried.id AND delivery.claim_token = tried.token",
);
const STOP_LANE: Sql = Sql::same(
    "UPDATE delivery SET next_us = NULL, claim_token = NULL, claim_until_us = NULL, last_status = $2 WHERE lane = $1 AND next_us IS NOT NULL",
);
const DELETE_SINK: Sql = Sql::same("DELETE FROM delivery WHERE sink = $1");
const LIST: Sql = Sql::same(
    "SELECT delivery.id, event_id, type, task_id, sink, attempts, next_us, last_status, last_tried_us, delivered_us, delivery.created_us \
     FROM delivery JOIN event ON event.id = delivery.event_id \
     WHERE (sink = $1 OR $1 IS NULL) AND (task_id = $2 OR $2 IS NULL) AND (event_id = $3 OR $3 IS NULL) \
     AND (CASE WHEN delivered_us IS NOT NULL THEN 'delivered' WHEN next_us IS NOT NULL THEN 'pending' ELSE 'failed' END = $4 OR $4 IS NULL) \
     AND (delivery.created_us, delivery.id) < ($5, $6) ORDER BY delivery.created_us DESC, delivery.id DESC LIMIT $7",
);
const FIND: Sql = Sql::same(
    "SELECT delivery.id, event_id, type, task_id, sink, attempts, next_us, last_status, last_tried_us, delivered_us, delivery.created_us \
     FROM delivery JOIN event ON event.id = delivery.event_id WHERE delivery.id = $1",
);
// From the beginning of the schedule, whether it was given up or delivered; what is on its way is let be.
const RESEND: Sql = Sql::same(
    "UPDATE delivery SET attempts = 0, next_us = $2, delivered_us = NULL WHERE id = $1 AND (claim_until_us IS NULL OR claim_until_us <= $2)",
);
const RESEND_FAILED: Sql = Sql::same(
    "UPDATE delivery SET attempts = 0, next_us = $2 WHERE next_us IS NULL AND delivered_us IS NULL AND (sink = $1 OR $1 IS NULL)",
);
const PENDING: Sql = Sql::same(
    "SELECT CASE WHEN sink = 'jetstream' THEN 'jetstream' ELSE 'webhook' END AS kind, COUNT(*) FROM delivery WHERE next_us IS NOT NULL GROUP BY 1",
);

pub const ALL: &[(&str, Sql)] = &[
    ("delivery::insert", INSERT),
    ("delivery::due_lanes", DUE_LANES),
    ("delivery::claim", CLAIM),
    ("delivery::claimed", CLAIMED),
    ("delivery::settle", SETTLE),
    ("delivery::stop_lane", STOP_LANE),
    ("delivery::delete_sink", DELETE_SINK),
    ("delivery::list", LIST),
    ("delivery::find", FIND),
    ("delivery::resend", RESEND),
    ("delivery::resend_failed", RESEND_FAILED),
    ("delivery::pending", PENDING),
];

/// A delivery that is to be stored.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub event_id: EventId,
    pub sink: Sink,
    pub lane: String,
    pub first_try_at: Timestamp,
    pub at: Timestamp,
}

/// A delivery that is to be tried now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub id: DeliveryId,
    pub event_id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub sink: Sink,
    pub lane: String,
    /// Tries until now.
    pub attempts: u32,
    pub body: String,
}

/// How a try ended, as it is noted.
#[derive(Debug, Clone)]
pub struct Settled {
    pub id: DeliveryId,
    pub token: Uuid,
    pub status: String,
    pub at: Timestamp,
    pub next_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
}

/// Which deliveries a list is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub sink: Option<Sink>,
    pub task_id: Option<TaskId>,
    pub event_id: Option<EventId>,
    pub state: Option<State>,
}

/// Stores deliveries; one that the event has already for the same sink stays as it is.
pub async fn insert(tx: &mut Tx<'_>, deliveries: &[NewDelivery]) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: String,
        event_id: String,
        sink: String,
        lane: &'a str,
        next_us: i64,
        created_us: i64,
    }
    let row = |new: &NewDelivery| -> (String, String, String) { (rows::hex(new.id.0), rows::hex(new.event_id.0), new.sink.to_string()) };
    let list: Vec<Row<'_>> = deliveries
        .iter()
        .map(|new| {
            let (id, event_id, sink) = row(new);
            Row { id, event_id, sink, lane: &new.lane, next_us: new.first_try_at.as_micros(), created_us: new.at.as_micros() }
        })
        .collect();
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// The lanes in which something is due.
pub async fn due_lanes(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<String>> {
    Ok(with_tx!(tx, DUE_LANES, |connection, sql| sqlx::query_scalar(sql).bind(now.as_micros()).fetch_all(connection).await)?)
}

/// Claims at most `limit` due deliveries of a lane.
pub async fn claim(tx: &mut Tx<'_>, lane: &str, token: Uuid, until: Timestamp, now: Timestamp, limit: usize) -> Result<Vec<Uuid>> {
    Ok(with_tx!(tx, CLAIM, |connection, sql| sqlx::query_scalar(sql)
        .bind(token)
        .bind(until.as_micros())
        .bind(now.as_micros())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .bind(lane)
        .fetch_all(connection)
        .await)?)
}

/// What was claimed, with the events' bodies.
pub async fn claimed(tx: &mut Tx<'_>, ids: IdList) -> Result<Vec<Claimed>> {
    #[derive(sqlx::FromRow)]
    struct ClaimedRow {
        id: Uuid,
        event_id: Uuid,
        r#type: String,
        task_id: Uuid,
        sink: String,
        lane: String,
        attempts: i64,
        body: String,
    }
    let rows = with_tx!(tx, CLAIMED, |connection, sql| sqlx::query_as::<_, ClaimedRow>(sql).bind(ids).fetch_all(connection).await)?;
    rows.into_iter()
        .map(|row| {
            let fields = Fields { table: "delivery", row: row.id };
            Ok(Claimed {
                id: DeliveryId(row.id),
                event_id: EventId(row.event_id),
                event_type: fields.fit("type", row.r#type.parse())?,
                task_id: TaskId(row.task_id),
                sink: fields.fit("sink", row.sink.parse())?,
                lane: row.lane,
                attempts: fields.fit("attempts", u32::try_from(row.attempts))?,
                body: row.body,
            })
        })
        .collect()
}

/// Notes how tries ended, those whose claim still holds.
pub async fn settle(tx: &mut Tx<'_>, tries: &[Settled]) -> Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        id: String,
        token: String,
        status: &'a str,
        at: i64,
        next_us: Option<i64>,
        delivered_us: Option<i64>,
    }
    let list: Vec<Row<'_>> = tries
        .iter()
        .map(|tried| Row {
            id: rows::hex(tried.id.0),
            token: rows::hex(tried.token),
            status: &tried.status,
            at: tried.at.as_micros(),
            next_us: tried.next_at.map(Timestamp::as_micros),
            delivered_us: tried.delivered_at.map(Timestamp::as_micros),
        })
        .collect();
    with_tx!(tx, SETTLE, |connection, sql| sqlx::query(sql).bind(rows::json(&list)).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Nothing more is tried in this lane; `status` says why.
pub async fn stop_lane(tx: &mut Tx<'_>, lane: &str, status: &str) -> Result<()> {
    with_tx!(tx, STOP_LANE, |connection, sql| sqlx::query(sql).bind(lane).bind(status).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// The sink is gone, and its deliveries with it.
pub async fn delete_sink(tx: &mut Tx<'_>, sink: &Sink) -> Result<()> {
    with_tx!(tx, DELETE_SINK, |connection, sql| sqlx::query(sql).bind(sink.to_string()).execute(connection).await.map(|_| ()))?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct DeliveryRow {
    id: Uuid,
    event_id: Uuid,
    r#type: String,
    task_id: Uuid,
    sink: String,
    attempts: i64,
    next_us: Option<i64>,
    last_status: Option<String>,
    last_tried_us: Option<i64>,
    delivered_us: Option<i64>,
    created_us: i64,
}

impl TryFrom<DeliveryRow> for Delivery {
    type Error = Error;

    fn try_from(row: DeliveryRow) -> Result<Self> {
        let fields = Fields { table: "delivery", row: row.id };
        let event_type: EventType = fields.fit("type", row.r#type.parse())?;
        Ok(Self {
            id: DeliveryId(row.id),
            event_id: EventId(row.event_id),
            event_type,
            task_id: TaskId(row.task_id),
            sink: fields.fit("sink", row.sink.parse())?,
            attempts: fields.fit("attempts", u32::try_from(row.attempts))?,
            next_at: row.next_us.map(Timestamp::from_micros),
            last_status: row.last_status,
            last_tried_at: row.last_tried_us.map(Timestamp::from_micros),
            delivered_at: row.delivered_us.map(Timestamp::from_micros),
            created_at: Timestamp::from_micros(row.created_us),
        })
    }
}

/// At most `limit` deliveries after `cursor`, newest first.
pub async fn list(tx: &mut Tx<'_>, filter: &DeliveryFilter, cursor: Option<Cursor>, limit: usize) -> Result<Vec<Delivery>> {
    let (before, before_id) = cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_micros(), cursor.id));
    with_tx!(tx, LIST, |connection, sql| sqlx::query_as::<_, DeliveryRow>(sql)
        .bind(filter.sink.as_ref().map(ToString::to_string))
        .bind(filter.task_id.map(|id| id.0))
        .bind(filter.event_id.map(|id| id.0))
        .bind(filter.state.map(State::as_str))
        .bind(before)
        .bind(before_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?
    .into_iter()
    .map(Delivery::try_from)
    .collect()
}

pub async fn find(tx: &mut Tx<'_>, id: DeliveryId) -> Result<Option<Delivery>> {
    with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, DeliveryRow>(sql).bind(id.0).fetch_optional(connection).await)?
        .map(Delivery::try_from)
        .transpose()
}

/// Begins a delivery anew; one that is being tried at this moment is left to that.
pub async fn resend(tx: &mut Tx<'_>, id: DeliveryId, now: Timestamp) -> Result<()> {
    with_tx!(tx, RESEND, |connection, sql| sqlx::query(sql).bind(id.0).bind(now.as_micros()).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Begins every delivery anew that was given up, of one sink or of all; answers how many.
pub async fn resend_failed(tx: &mut Tx<'_>, sink: Option<&Sink>, now: Timestamp) -> Result<u64> {
    Ok(with_tx!(tx, RESEND_FAILED, |connection, sql| sqlx::query(sql)
        .bind(sink.map(ToString::to_string))
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?)
}

/// How many deliveries wait, by the kind of their sink.
pub async fn pending(tx: &mut Tx<'_>) -> Result<Vec<(String, u64)>> {
    let rows: Vec<(String, i64)> =
        with_tx!(tx, PENDING, |connection, sql| sqlx::query_as::<_, (String, i64)>(sql).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(kind, count)| (kind, u64::try_from(count).unwrap_or(0))).collect())
}
