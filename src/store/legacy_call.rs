//! v1 calls counted by caller, day (UTC) and outcome. Unlike a metric's counter these survive restarts, so "nobody called for 90 days" can be proved from them.
//!
//! [`RECEIVED`] counts calls as they come in; the other outcomes say how they ended, and come in batches a moment later.

use super::{Result, Sql, Tx, tx::with_tx};

/// The outcome under which every call is counted when it comes in, whatever becomes of it.
pub const RECEIVED: &str = "received";

/// Every query of this file, for the test that prepares them all.
pub const ALL: &[(&str, Sql)] = &[("legacy_call::ADD", ADD), ("legacy_call::SINCE", SINCE)];

const ADD: Sql = Sql::same(
    "INSERT INTO legacy_call (caller, day, outcome, calls) VALUES ($1, $2, $3, $4)
     ON CONFLICT (caller, day, outcome) DO UPDATE SET calls = legacy_call.calls + excluded.calls",
);

/// Adds `calls` to the count.
///
/// # Errors
/// When the database does not take it.
pub async fn add(tx: &mut Tx<'_>, caller: &str, day: &str, outcome: &str, calls: u32) -> Result<()> {
    with_tx!(tx, ADD, |connection, sql| {
        sqlx::query(sql).bind(caller).bind(day).bind(outcome).bind(i64::from(calls)).execute(connection).await?;
        Ok(())
    })
}

const SINCE: Sql = Sql::same(
    "SELECT caller, day, outcome, calls FROM legacy_call WHERE day >= $1
     -- The newest days are the ones that must not be cut off.
     ORDER BY day DESC, caller, outcome LIMIT $2",
);

/// A day's calls of one caller with one outcome.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DayCount {
    pub caller: String,
    /// In UTC, YYYY-MM-DD.
    pub day: String,
    pub outcome: String,
    pub calls: i64,
}

/// All counts since `day`, newest day first, at most `limit`.
///
/// # Errors
/// When the database cannot be read.
pub async fn since(tx: &mut Tx<'_>, day: &str, limit: i64) -> Result<Vec<DayCount>> {
    with_tx!(tx, SINCE, |connection, sql| Ok(sqlx::query_as(sql).bind(day).bind(limit).fetch_all(connection).await?))
}
