//! What can go wrong in the store, and what it means for whoever called: try again later, or something is wrong.

use sqlx::{postgres::PgDatabaseError, sqlite::SqliteError};
use std::sync::Arc;

/// The store's error; losing a race is not one (see `style.md` rule 10).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement or the connection failed. Nothing was committed.
    #[error("the database refused or lost a statement")]
    Sql(#[from] sqlx::Error),
    /// SQLite could not begin or commit the group in which this transaction ran. Nothing of the group was committed; every member gets this.
    #[error("the database could not commit the group of this transaction")]
    Group(#[source] Arc<sqlx::Error>),
    /// The transaction was shared with others, and every one of them gets this.
    #[error("a transaction shared with others failed")]
    Together(#[source] Arc<Error>),
    /// The connection broke during COMMIT: it may or may not have happened. Whoever must know looks the row up by a token it made beforehand.
    #[error("the outcome of the commit is unknown")]
    CommitUnknown(#[source] sqlx::Error),
    /// A stored value does not fit its type.
    #[error("{table}.{column} of {row} does not hold what it should: {reason}")]
    Corrupt { table: &'static str, column: &'static str, row: String, reason: String },
    /// The closure panicked; nothing was committed.
    #[error("transaction {0} panicked")]
    Panicked(&'static str),
    /// The store is closed, or its writer is gone.
    #[error("the store is closed")]
    Closed,
    /// The named fault hook of tests.
    #[error("injected fault in {0}")]
    Injected(&'static str),
    /// Migrations could not be applied, or the schema is not the one this program needs.
    #[error("{0}")]
    Schema(String),
    /// The database is there, but the way to it is not one that this program can use; says what to set.
    #[error("{0}")]
    Unusable(String),
    /// The operating system refused something beside the database: its folder, a lock file, a thread.
    #[error("{what}")]
    System { what: String, source: std::io::Error },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether the database is away or overloaded, so that the same call may succeed later.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Closed | Self::Injected(_) | Self::CommitUnknown(_) => true,
            Self::Sql(_) | Self::Group(_) => self.cause().is_some_and(|cause| cause != Cause::Wrong),
            Self::Together(error) => error.is_unavailable(),
            Self::Corrupt { .. } | Self::Panicked(_) | Self::Schema(_) | Self::Unusable(_) | Self::System { .. } => false,
        }
    }

    /// Whether a unique index refused the statement: somebody else was first.
    #[must_use]
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Sql(sqlx::Error::Database(error)) if error.is_unique_violation())
    }

    /// Whether there is no room left where the database lives.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.cause() == Some(Cause::DiskFull)
    }

    /// Whether another transaction was in the way and running the same one again is the answer.
    pub(super) fn is_conflict(&self) -> bool {
        self.cause() == Some(Cause::Conflict)
    }

    /// Whether the connection is gone, or the server said that it is going.
    pub(super) fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Sql(error) if connection_lost(error))
    }

    fn cause(&self) -> Option<Cause> {
        match self {
            Self::Sql(error) | Self::CommitUnknown(error) => Some(cause(error)),
            Self::Group(error) => Some(cause(error)),
            Self::Together(error) => error.cause(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Conflict,
    DiskFull,
    Away,
    /// The statement, the data or the program.
    Wrong,
}

fn cause(error: &sqlx::Error) -> Cause {
    match error {
        sqlx::Error::Database(error) => {
            if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
                postgres_cause(error.code())
            } else if error.try_downcast_ref::<SqliteError>().is_some() {
                sqlite_cause(error.code().and_then(|code| code.parse().ok()).unwrap_or(0))
            } else {
                Cause::Wrong
            }
        }
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => Cause::DiskFull,
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Cause::Away,
        _ => Cause::Wrong,
    }
}

/// By SQLSTATE (PostgreSQL, appendix A).
fn postgres_cause(code: &str) -> Cause {
    match code {
        "40001" | "40P01" => Cause::Conflict,
        "53100" => Cause::DiskFull,
        // Lock not available in lock_timeout; idle in transaction too long; a server that was made read-only (a failover under way).
        "55P03" | "25P03" | "25006" => Cause::Away,
        // Connection, insufficient resources, operator intervention (shutdown, statement_timeout), system error.
        _ if ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => Cause::Away,
        _ => Cause::Wrong,
    }
}

/// By primary result code (sqlite.org/rescode.html); the higher bits only say more of the same.
fn sqlite_cause(code: u32) -> Cause {
    match code & 0xff {
        5 | 6 => Cause::Conflict,       // BUSY, LOCKED
        13 => Cause::DiskFull,          // FULL
        7 | 8 | 10 | 14 => Cause::Away, // NOMEM, READONLY (remounted after an error), IOERR, CANTOPEN
        _ => Cause::Wrong,
    }
}

/// A shutting-down server sends 57P01 or 57P02 and hangs up; a connection that times out in a transaction sends 25P03 and hangs up.
pub(super) fn connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|error| matches!(error.code(), "57P01" | "57P02" | "57P03" | "25P03") || error.code().starts_with("08")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_to_try_again() {
        for (code, cause) in [
            ("40001", Cause::Conflict),
            ("53100", Cause::DiskFull),
            ("57014", Cause::Away),
            ("55P03", Cause::Away),
            ("23505", Cause::Wrong),
        ] {
            assert_eq!(postgres_cause(code), cause, "{code}");
        }
        // 517 is BUSY_SNAPSHOT, 778 IOERR_WRITE, 2067 CONSTRAINT_UNIQUE.
        for (code, cause) in [
            (5, Cause::Conflict),
            (517, Cause::Conflict),
            (13, Cause::DiskFull),
            (778, Cause::Away),
            (2067, Cause::Wrong),
            (1, Cause::Wrong),
        ] {
            assert_eq!(sqlite_cause(code), cause, "{code}");
        }
    }

    #[test]
    fn what_is_away_is_told_from_what_is_wrong() {
        assert!(Error::Sql(sqlx::Error::PoolTimedOut).is_unavailable());
        assert!(Error::Sql(sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset))).is_unavailable());
        assert!(Error::Sql(sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::StorageFull))).is_disk_full());
        assert!(!Error::Sql(sqlx::Error::RowNotFound).is_unavailable());
        assert!(!Error::Sql(sqlx::Error::Decode("bad".into())).is_unavailable());
        assert!(!Error::Schema("old".into()).is_unavailable());
    }
}
