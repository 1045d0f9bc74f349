//! Callers as the ledger knows them: when each first and last used v1 and v2, from where, and whether its name was ever proved.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::domain::{
    caller::{Caller, KnownCaller, Proof, Sighting},
    time::Timestamp,
};

/// Every query of this file, for the test that prepares them all.
pub const ALL: &[(&str, Sql)] = &[("caller::SEEN_ON_V1", SEEN_ON_V1), ("caller::SEEN_ON_V2", SEEN_ON_V2), ("caller::LIST", LIST)];

const SEEN_ON_V1: Sql = Sql::same(
    "INSERT INTO caller (name, proved, first_v1_us, last_v1_us, last_address, last_user_agent) VALUES ($1, $2, $3, $3, $4, $5)
     ON CONFLICT (name) DO UPDATE SET
       proved          = CASE WHEN excluded.proved > caller.proved THEN excluded.proved ELSE caller.proved END,
       first_v1_us     = CASE WHEN caller.first_v1_us <= excluded.first_v1_us THEN caller.first_v1_us ELSE excluded.first_v1_us END,
       -- Batches of several replicas arrive in any order; the last call never moves back.
       last_v1_us      = CASE WHEN caller.last_v1_us > excluded.last_v1_us THEN caller.last_v1_us ELSE excluded.last_v1_us END,
       last_address    = excluded.last_address,
       last_user_agent = excluded.last_user_agent",
);

const SEEN_ON_V2: Sql = Sql::same(
    "INSERT INTO caller (name, proved, first_v2_us, last_v2_us, last_address, last_user_agent) VALUES ($1, $2, $3, $3, $4, $5)
     ON CONFLICT (name) DO UPDATE SET
       proved          = CASE WHEN excluded.proved > caller.proved THEN excluded.proved ELSE caller.proved END,
       first_v2_us     = CASE WHEN caller.first_v2_us <= excluded.first_v2_us THEN caller.first_v2_us ELSE excluded.first_v2_us END,
       last_v2_us      = CASE WHEN caller.last_v2_us > excluded.last_v2_us THEN caller.last_v2_us ELSE excluded.last_v2_us END,
       last_address    = excluded.last_address,
       last_user_agent = excluded.last_user_agent",
);

/// The caller used v1.
///
/// # Errors
/// When the database does not take it.
pub async fn seen_on_v1(tx: &mut Tx<'_>, sighting: &Sighting) -> Result<()> {
    seen(tx, SEEN_ON_V1, sighting).await
}

/// The caller used v2.
///
/// # Errors
/// When the database does not take it.
pub async fn seen_on_v2(tx: &mut Tx<'_>, sighting: &Sighting) -> Result<()> {
    seen(tx, SEEN_ON_V2, sighting).await
}

async fn seen(tx: &mut Tx<'_>, text: Sql, sighting: &Sighting) -> Result<()> {
    with_tx!(tx, text, |connection, sql| {
        sqlx::query(sql)
            .bind(&sighting.caller.name)
            .bind(i64::from(sighting.caller.proof == Proof::Proved))
            .bind(sighting.at.as_micros())
            .bind(&sighting.address)
            .bind(&sighting.user_agent)
            .execute(connection)
            .await?;
        Ok(())
    })
}

const LIST: Sql = Sql::same(
    "SELECT name, proved, first_v1_us, last_v1_us, first_v2_us, last_v2_us, last_address, last_user_agent FROM caller
     -- Whoever called v1 last stands first: should there ever be more than the limit, those are the ones that matter.
     ORDER BY CASE WHEN last_v1_us IS NULL THEN 1 ELSE 0 END, last_v1_us DESC, name LIMIT $1",
);

#[derive(sqlx::FromRow)]
struct CallerRow {
    name: String,
    proved: i64,
    first_v1_us: Option<i64>,
    last_v1_us: Option<i64>,
    first_v2_us: Option<i64>,
    last_v2_us: Option<i64>,
    last_address: Option<String>,
    last_user_agent: Option<String>,
}

impl From<CallerRow> for KnownCaller {
    fn from(row: CallerRow) -> Self {
        Self {
            caller: Caller { name: row.name, proof: if row.proved == 1 { Proof::Proved } else { Proof::Claimed } },
            first_v1_at: row.first_v1_us.map(Timestamp::from_micros),
            last_v1_at: row.last_v1_us.map(Timestamp::from_micros),
            first_v2_at: row.first_v2_us.map(Timestamp::from_micros),
            last_v2_at: row.last_v2_us.map(Timestamp::from_micros),
            last_address: row.last_address,
            last_user_agent: row.last_user_agent,
        }
    }
}

/// Every caller ever seen, whoever called v1 last first, at most `limit`.
///
/// # Errors
/// When the database cannot be read.
pub async fn list(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<KnownCaller>> {
    let rows: Vec<CallerRow> = with_tx!(tx, LIST, |connection, sql| sqlx::query_as(sql).bind(limit).fetch_all(connection).await?);
    Ok(rows.into_iter().map(KnownCaller::from).collect())
}
