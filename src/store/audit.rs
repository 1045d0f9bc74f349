//! The audit log: who changed what by hand. Append-only; nothing here updates or deletes.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::domain::{
    ids::{AuditId, RequestId},
    time::Timestamp,
};

/// Every query of this file, for the test that prepares them all.
pub const ALL: &[(&str, Sql)] = &[("audit::APPEND", APPEND)];

/// One change made by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: AuditId,
    pub at: Timestamp,
    /// The caller's name.
    pub actor: String,
    pub address: String,
    /// What was done, such as `task.cancel`.
    pub action: &'static str,
    /// What it was done to, such as a task's id.
    pub object: String,
    pub request_id: RequestId,
}

const APPEND: Sql = Sql::same(
    "INSERT INTO audit (id, at_us, actor, address, action, object, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (id) DO NOTHING",
);

/// Appends an entry; doing it twice is once.
///
/// # Errors
/// When the database does not take it.
pub async fn append(tx: &mut Tx<'_>, entry: &Entry) -> Result<()> {
    with_tx!(tx, APPEND, |connection, sql| {
        sqlx::query(sql)
            .bind(entry.id.0)
            .bind(entry.at.as_micros())
            .bind(&entry.actor)
            .bind(&entry.address)
            .bind(entry.action)
            .bind(&entry.object)
            .bind(entry.request_id.to_string())
            .execute(connection)
            .await?;
        Ok(())
    })
}
