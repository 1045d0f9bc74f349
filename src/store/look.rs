//! A look at a database, for who only wants to know how it is: one session that cannot write, beside whatever serves, without its lock.
//!
//! Nothing is made, migrated or repaired: a SQLite file that is not there stays so. Where no write-ahead log lies beside one that is there, nobody has it open; it is
//! read as it is then, because SQLite would make a log to read it together with others. Whoever reads for long asks at the end whether somebody has come meanwhile.

use super::{Error, Result, Sql, Statements, Tx, migrate::Schema, tx::with_tx};
use crate::domain::time::Timestamp;
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, SqliteConnection, postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};
use std::{path::PathBuf, str::FromStr as _, time::Duration};

const VERSION: Sql = Sql::each("SELECT 'SQLite ' || sqlite_version()", "SELECT 'PostgreSQL ' || current_setting('server_version')");

pub const ALL: &[(&str, Sql)] = &[("look::version", VERSION)];

/// How long a read waits for another process's write.
const BUSY: Duration = Duration::from_secs(5);

/// The session.
#[derive(Debug)]
pub struct Look {
    session: Session,
    /// The log that was not there when the look began.
    alone_without: Option<PathBuf>,
}

#[derive(Debug)]
enum Session {
    Sqlite(SqliteConnection),
    Postgres(Box<PgConnection>),
}

/// The file of a SQLite URL; `None`: it is PostgreSQL's, or none.
#[must_use]
pub fn file_of(url: &str) -> Option<PathBuf> {
    let options = SqliteConnectOptions::from_str(url).ok().filter(|_| url.starts_with("sqlite:"))?;
    Some(options.get_filename().to_owned())
}

impl Look {
    /// # Errors
    /// When the database cannot be reached.
    pub async fn open(url: &str) -> Result<Self> {
        let mut alone_without = None;
        let session = if url.starts_with("sqlite:") {
            // Neither journal mode nor anything else of the file is touched.
            let options = SqliteConnectOptions::from_str(url)?.read_only(true).create_if_missing(false).busy_timeout(BUSY);
            let mut log = options.get_filename().as_os_str().to_owned();
            log.push("-wal");
            alone_without = Some(PathBuf::from(log)).filter(|log| !log.exists());
            Session::Sqlite(options.immutable(alone_without.is_some()).connect().await?)
        } else {
            // Nothing that a pooler would refuse or give to somebody else: only SELECTs are sent, none of them under a name.
            let options = PgConnectOptions::from_str(url)?.application_name("protocol-bridge doctor").extra_float_digits(None);
            Session::Postgres(Box::new(PgConnection::connect_with(&options.statement_cache_capacity(0)).await?))
        };
        Ok(Self { session, alone_without })
    }

    /// For the functions that read tables.
    pub fn tx(&mut self) -> Tx<'_> {
        match &mut self.session {
            Session::Sqlite(connection) => Tx::Sqlite(connection),
            Session::Postgres(connection) => Tx::Postgres(connection, Statements::Unnamed),
        }
    }

    /// Which program it is.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn version(&mut self) -> Result<String> {
        let tx = &mut self.tx();
        Ok(with_tx!(tx, VERSION, |connection, sql| sqlx::query_scalar(sql).fetch_one(connection).await)?)
    }

    /// What time it says it is; `None` if it has no clock of its own.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn time(&mut self) -> Result<Option<Timestamp>> {
        super::database_time::ask(&mut self.tx()).await
    }

    /// How its schema compares with what this program needs.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn schema(&mut self) -> Result<Schema> {
        match &mut self.session {
            Session::Sqlite(connection) => super::migrate::compare_sqlite(connection).await,
            Session::Postgres(connection) => super::migrate::compare_postgres(connection).await,
        }
    }

    /// Whether somebody has opened the database who was not there before: what was read of it since may be old, or torn.
    #[must_use]
    pub fn is_overtaken(&self) -> bool {
        self.alone_without.as_ref().is_some_and(|log| log.exists())
    }

    /// Ends the session; how the goodbye goes changes nothing.
    pub async fn close(self) {
        let _ = match self.session {
            Session::Sqlite(connection) => connection.close().await,
            Session::Postgres(connection) => connection.close().await,
        };
    }
}

/// Whether the database says that a table is not there: no service has started on it yet.
#[must_use]
pub fn lacks_table(error: &Error) -> bool {
    matches!(error, Error::Sql(sqlx::Error::Database(error))
        if error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table"))
}
