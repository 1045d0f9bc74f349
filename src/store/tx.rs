//! An open transaction (or read connection) on either database, and the macro that type-checks a body once per database.

use super::{Result, statements::Statements};
use futures::future::BoxFuture;
use sqlx::{PgConnection, SqliteConnection};

/// What data functions take first.
#[derive(Debug)]
pub enum Tx<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection, Statements),
}

/// Gives a closure the signature that transactions take: its type alone does not say that the future borrows the transaction.
pub fn work<T, F>(work: F) -> F
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
{
    work
}

/// Runs `$body` with the connection and the text for the database of `$tx`:
/// `with_tx!(tx, SELECT, |connection, sql| sqlx::query_as::<_, Row>(sql).bind(id).fetch_optional(connection).await)`.
/// The body is compiled twice, once per database, so every bind and decode is checked for both.
macro_rules! with_tx {
    ($tx:expr, $sql:expr, |$connection:ident, $text:ident| $body:expr) => {
        match $tx {
            $crate::store::Tx::Sqlite(connection) => {
                let ($connection, $text) = (&mut **connection, $sql.sqlite);
                $body
            }
            $crate::store::Tx::Postgres(connection, statements) => {
                let connection = $crate::store::statements::Careful { connection: &mut **connection, statements: *statements };
                let ($connection, $text) = (connection, $sql.postgres);
                $body
            }
        }
    };
}
pub(crate) use with_tx;
