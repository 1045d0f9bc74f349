//! Facts about this database itself, by name: the document store's id, since when the ledger watches, whether claiming is paused.

use super::{Result, Sql, Tx, tx::with_tx};

const GET: Sql = Sql::same("SELECT value FROM setting WHERE name = $1");
const PUT: Sql = Sql::same("INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value");
const PUT_IF_ABSENT: Sql = Sql::same("INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
const DELETE: Sql = Sql::same("DELETE FROM setting WHERE name = $1");

pub const ALL: &[(&str, Sql)] =
    &[("setting::GET", GET), ("setting::PUT", PUT), ("setting::PUT_IF_ABSENT", PUT_IF_ABSENT), ("setting::DELETE", DELETE)];

/// The value that was put under `name`, if any.
pub async fn get(tx: &mut Tx<'_>, name: &str) -> Result<Option<String>> {
    let value = with_tx!(tx, GET, |connection, sql| sqlx::query_scalar(sql).bind(name).fetch_optional(connection).await)?;
    Ok(value)
}

/// Puts `value` in place of whatever was there.
pub async fn put(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<()> {
    with_tx!(tx, PUT, |connection, sql| sqlx::query(sql).bind(name).bind(value).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// Puts `value` unless something is there already; `false`: something is.
pub async fn insert(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<bool> {
    let rows = with_tx!(tx, PUT_IF_ABSENT, |connection, sql| sqlx::query(sql)
        .bind(name)
        .bind(value)
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

/// Puts `value` unless something is there already, and answers what stands now: of several who try at once, all get the same.
pub async fn put_if_absent(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<String> {
    if insert(tx, name, value).await? {
        return Ok(value.to_owned());
    }
    // The insert has waited for the winner's commit, so its row is there to be seen.
    Ok(get(tx, name).await?.unwrap_or_else(|| value.to_owned()))
}

/// Takes away what is there; `false`: nothing was.
pub async fn delete(tx: &mut Tx<'_>, name: &str) -> Result<bool> {
    let rows =
        with_tx!(tx, DELETE, |connection, sql| sqlx::query(sql).bind(name).execute(connection).await.map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}
