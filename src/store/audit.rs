//! The audit log: who changed what by hand. Append-only; nothing here updates or deletes. An entry is written in the transaction of its change.

use super::{Result, Sql, Tx, field::Fields, tx::with_tx};
use crate::domain::{
    audit::{Action, Author, Entry},
    cursor::Cursor,
    ids::{AuditId, RequestId},
    time::Timestamp,
};
use uuid::Uuid;

const APPEND: Sql = Sql::same(
    "INSERT INTO audit (id, at_us, actor, address, action, object, detail, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
     ON CONFLICT (id) DO NOTHING",
);
const LIST: Sql = Sql::same(
    "SELECT id, at_us, actor, address, action, object, detail, request_id FROM audit \
     WHERE (actor = $1 OR $1 IS NULL) AND (action = $2 OR $2 IS NULL) AND (object = $3 OR $3 IS NULL) \
     AND at_us >= $4 AND at_us < $5 AND (at_us, id) < ($6, $7) ORDER BY at_us DESC, id DESC LIMIT $8",
);

pub const ALL: &[(&str, Sql)] = &[("audit::append", APPEND), ("audit::list", LIST)];

/// Which entries a list is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<Action>,
    pub object: Option<String>,
    /// Done at or after.
    pub from: Option<Timestamp>,
    /// Done before.
    pub to: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct EntryRow {
    id: Uuid,
    at_us: i64,
    actor: String,
    address: String,
    action: String,
    object: String,
    detail: Option<String>,
    request_id: String,
}

impl TryFrom<EntryRow> for Entry {
    type Error = super::Error;

    fn try_from(row: EntryRow) -> Result<Self> {
        let fields = Fields { table: "audit", row: row.id };
        let request_id: RequestId = fields.fit("request_id", row.request_id.parse())?;
        Ok(Self {
            id: AuditId(row.id),
            at: Timestamp::from_micros(row.at_us),
            author: Author { name: row.actor, address: row.address, request_id },
            action: fields.fit("action", row.action.parse())?,
            object: row.object,
            detail: row.detail,
        })
    }
}

/// Appends an entry; doing it twice is once.
pub async fn append(tx: &mut Tx<'_>, entry: &Entry) -> Result<()> {
    with_tx!(tx, APPEND, |connection, sql| sqlx::query(sql)
        .bind(entry.id.0)
        .bind(entry.at.as_micros())
        .bind(&entry.author.name)
        .bind(&entry.author.address)
        .bind(entry.action.as_str())
        .bind(&entry.object)
        .bind(&entry.detail)
        .bind(entry.author.request_id.to_string())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// At most `limit` entries after `cursor`, newest first.
pub async fn list(tx: &mut Tx<'_>, filter: &AuditFilter, cursor: Option<Cursor>, limit: usize) -> Result<Vec<Entry>> {
    let (before, before_id) = cursor.map_or((i64::MAX, Uuid::max()), |cursor| (cursor.at.as_micros(), cursor.id));
    with_tx!(tx, LIST, |connection, sql| sqlx::query_as::<_, EntryRow>(sql)
        .bind(filter.actor.as_deref())
        .bind(filter.action.map(Action::as_str))
        .bind(filter.object.as_deref())
        .bind(filter.from.map_or(i64::MIN, Timestamp::as_micros))
        .bind(filter.to.map_or(i64::MAX, Timestamp::as_micros))
        .bind(before)
        .bind(before_id)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await)?
    .into_iter()
    .map(Entry::try_from)
    .collect()
}
