//! Finished protocols: one row a version, never overwritten. Written in the terminal transaction of the task that made them, together with their documents.

use super::{Error, Result, Sql, Tx, document, tx::with_tx};
use crate::domain::{
    ids::{AgendaId, ProtocolId, TaskId},
    protocol::{NewProtocol, Protocol},
    time::Timestamp,
};
use uuid::Uuid;

const INSERT: Sql = Sql::same(
    "INSERT INTO protocol (id, task_id, agenda_id, version, number, fingerprint, record, created_us)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);

const FIND: Sql = Sql::same("SELECT id, task_id, agenda_id, version, number, fingerprint, record, created_us FROM protocol WHERE id = $1");

// The unique index on (agenda_id, version) serves both.
const OF_AGENDA: Sql = Sql::same(
    "SELECT id, task_id, agenda_id, version, number, fingerprint, record, created_us FROM protocol
     WHERE agenda_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3",
);

pub const ALL: &[(&str, Sql)] = &[("protocol::INSERT", INSERT), ("protocol::FIND", FIND), ("protocol::OF_AGENDA", OF_AGENDA)];

/// Stores the next version of an agenda's protocol with its documents, and returns it. `(agenda_id, version)` is unique: of two transactions that would give
/// the same version one fails and is repeated or rolled back.
pub async fn publish(tx: &mut Tx<'_>, new: &NewProtocol, task: TaskId, now: Timestamp) -> Result<Protocol> {
    let version = newest(tx, &new.agenda_id).await?.map_or(1, |newest| newest.version + 1);
    let record = serde_json::to_string(&new.record).expect("a record is plain data with text keys, which always serializes");
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(new.id.0)
        .bind(task.0)
        .bind(new.agenda_id.as_str())
        .bind(i64::from(version))
        .bind(&new.number)
        .bind(&new.fingerprint)
        .bind(&record)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    for document in &new.documents {
        document::insert(tx, new.id, document).await?;
    }
    Ok(Protocol {
        id: new.id,
        task_id: task,
        agenda_id: new.agenda_id.clone(),
        version,
        number: new.number.clone(),
        fingerprint: new.fingerprint.clone(),
        record: new.record.clone(),
        documents: new.documents.clone(),
        created_at: now,
    })
}

pub async fn find(tx: &mut Tx<'_>, id: ProtocolId) -> Result<Option<Protocol>> {
    let row: Option<ProtocolRow> = with_tx!(tx, FIND, |connection, sql| sqlx::query_as(sql).bind(id.0).fetch_optional(connection).await)?;
    match row {
        Some(row) => complete(tx, row).await.map(Some),
        None => Ok(None),
    }
}

/// The agenda's newest version.
pub async fn newest(tx: &mut Tx<'_>, agenda: &AgendaId) -> Result<Option<Protocol>> {
    Ok(of_agenda(tx, agenda, None, 1).await?.pop())
}

/// An agenda's protocols, newest version first; those below `before_version`, if given.
pub async fn of_agenda(tx: &mut Tx<'_>, agenda: &AgendaId, before_version: Option<u32>, limit: usize) -> Result<Vec<Protocol>> {
    let before = before_version.map_or(i64::MAX, i64::from);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows: Vec<ProtocolRow> = with_tx!(tx, OF_AGENDA, |connection, sql| sqlx::query_as(sql)
        .bind(agenda.as_str())
        .bind(before)
        .bind(limit)
        .fetch_all(connection)
        .await)?;
    let mut protocols = Vec::with_capacity(rows.len());
    for row in rows {
        protocols.push(complete(tx, row).await?);
    }
    Ok(protocols)
}

async fn complete(tx: &mut Tx<'_>, row: ProtocolRow) -> Result<Protocol> {
    let mut protocol = Protocol::try_from(row)?;
    protocol.documents = document::of_protocol(tx, protocol.id).await?;
    Ok(protocol)
}

#[derive(sqlx::FromRow)]
struct ProtocolRow {
    id: Uuid,
    task_id: Uuid,
    agenda_id: String,
    version: i64,
    number: String,
    fingerprint: String,
    record: String,
    created_us: i64,
}

impl TryFrom<ProtocolRow> for Protocol {
    type Error = Error;

    fn try_from(row: ProtocolRow) -> Result<Self> {
        let corrupt = |column, reason: String| Error::Corrupt { table: "protocol", column, row: row.id.to_string(), reason };
        Ok(Self {
            id: ProtocolId(row.id),
            task_id: TaskId(row.task_id),
            agenda_id: row
                .agenda_id
                .parse()
                .map_err(|error: crate::domain::ids::InvalidAgendaId| corrupt("agenda_id", error.to_string()))?,
            version: u32::try_from(row.version).map_err(|error| corrupt("version", error.to_string()))?,
            record: serde_json::from_str(&row.record).map_err(|error| corrupt("record", error.to_string()))?,
            number: row.number,
            fingerprint: row.fingerprint,
            documents: Vec::new(),
            created_at: Timestamp::from_micros(row.created_us),
        })
    }
}
