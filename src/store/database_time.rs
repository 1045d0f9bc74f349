//! What time the database says it is. The one query that asks: everything else is handed the clock's `now`, which follows this.
//!
//! The shortest of a few round trips says most. Nothing is written, so a crash in the middle means nothing.

use super::{Result, Sql, Tx, tx::with_tx};
use crate::{
    base::clock::{Clock, Followed, Monotonic},
    domain::time::Timestamp,
};
use sqlx::{PgConnection, Row as _};
use std::time::Duration;

const NOW: Sql = Sql::each(
    // SQLite has no clock but the machine's.
    "SELECT NULL",
    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
);

pub const ALL: &[(&str, Sql)] = &[("database_time::now", NOW)];

const ROUND_TRIPS: usize = 5;

/// Asks once; `None`: the database has no clock but the machine's.
pub(super) async fn ask(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let micros: Option<i64> = with_tx!(tx, NOW, |connection, sql| sqlx::query_scalar(sql).fetch_one(connection).await)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// Asks a few times and lets `clock` follow the answer that came soonest.
pub(super) async fn follow(connection: &mut PgConnection, clock: &Clock) -> Result<Followed> {
    let mut best: Option<(Duration, Monotonic, Timestamp, Monotonic)> = None;
    for _ in 0..ROUND_TRIPS {
        let asked = clock.monotonic();
        // Not prepared: a round trip is a round trip then, whoever stands in between.
        let row = sqlx::raw_sql(NOW.postgres).fetch_one(&mut *connection).await?;
        let answered = clock.monotonic();
        let theirs = Timestamp::from_micros(row.try_get(0)?);
        let round_trip = answered.since(asked);
        if best.is_none_or(|(shortest, ..)| round_trip < shortest) {
            best = Some((round_trip, asked, theirs, answered));
        }
    }
    Ok(best.map_or(Followed::Agrees, |(_, asked, theirs, answered)| clock.follow(asked, theirs, answered)))
}
