//! A database of the test's own, and one test body for both kinds.

use super::postgres;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Dialect, Options},
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Row as _, TypeInfo as _};
use std::str::FromStr as _;
use tempfile::TempDir;

/// A fresh, empty database; gone with the test.
#[derive(Debug)]
pub struct TestDatabase {
    pub url: String,
    pub dialect: Dialect,
    /// A folder for whatever belongs to it; on SQLite the database lies in it.
    pub data_dir: TempDir,
}

impl TestDatabase {
    #[expect(clippy::unused_async, reason = "the same to call as the other")]
    pub async fn sqlite() -> Self {
        let data_dir = TempDir::new().expect("a folder");
        Self { url: format!("sqlite:{}", data_dir.path().join("test.db").display()), dialect: Dialect::Sqlite, data_dir }
    }

    /// A file in memory: what is tried with it is order, not whether a disk keeps its word, and there is no disk to wait for.
    #[expect(clippy::unused_async, reason = "the same to call as the other")]
    pub async fn sqlite_in_memory() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let data_dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a folder");
        Self { url: format!("sqlite:{}", data_dir.path().join("test.db").display()), dialect: Dialect::Sqlite, data_dir }
    }

    pub async fn postgres() -> Self {
        let cluster = tokio::task::spawn_blocking(postgres::shared).await.expect("the cluster");
        Self::postgres_on(cluster).await
    }

    /// A fresh database on a cluster of the test's own.
    pub async fn postgres_on(cluster: &str) -> Self {
        let data_dir = TempDir::new().expect("a folder");
        // The folder's name is unique on this machine; the database's name follows it.
        let unique: String = data_dir.path().to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
        let name = format!("test_{}_{}", std::process::id(), unique.to_lowercase());
        let url = format!("{cluster}/postgres");
        let mut connection = sqlx::PgConnection::connect(&url).await.expect("the cluster answers");
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.expect("a database of the test's own");
        Self { url: format!("{cluster}/{name}"), dialect: Dialect::Postgres, data_dir }
    }

    /// The same database by another way (a proxy, a pooler), with a folder of its own.
    pub fn by_way_of(&self, url: String) -> Self {
        Self { url, dialect: self.dialect, data_dir: TempDir::new().expect("a folder") }
    }

    /// One more of the same kind.
    pub async fn another(&self) -> Self {
        match self.dialect {
            Dialect::Sqlite => Self::sqlite().await,
            Dialect::Postgres => Self::postgres().await,
        }
    }

    pub fn options(&self, clock: Clock, entropy: Entropy) -> Options {
        Options { url: self.url.clone(), listen_url: None, max_connections: 8, migrate: true, clock, entropy }
    }

    /// Opens the store, migrated.
    pub async fn open(&self, clock: Clock, entropy: Entropy) -> Db {
        Db::open(self.options(clock, entropy)).await.expect("the store opens")
    }

    /// Runs statements on a connection of their own, beside the store.
    pub async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match self.dialect {
            Dialect::Sqlite => self.sqlite_connection().await.execute(sql).await.map(drop),
            Dialect::Postgres => self.postgres_connection().await.execute(sql).await.map(drop),
        }
        .expect("the statements run");
    }

    /// Rows of a query on a connection of its own; numbers, texts, booleans and null as such, ids as their text.
    pub async fn fetch(&self, sql: &str) -> Vec<Vec<Value>> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self.dialect {
            Dialect::Sqlite => {
                let rows = self.sqlite_connection().await.fetch_all(sql).await.expect("the query runs");
                rows.iter().map(|row| (0..row.len()).map(|index| sqlite_value(row, index)).collect()).collect()
            }
            Dialect::Postgres => {
                let rows = self.postgres_connection().await.fetch_all(sql).await.expect("the query runs");
                rows.iter().map(|row| (0..row.len()).map(|index| postgres_value(row, index)).collect()).collect()
            }
        }
    }

    /// The number in the only column of the only row.
    pub async fn number(&self, sql: &str) -> i64 {
        self.fetch(sql).await[0][0].as_i64().expect("a number")
    }

    pub async fn sqlite_connection(&self) -> sqlx::SqliteConnection {
        let options = sqlx::sqlite::SqliteConnectOptions::from_str(&self.url)
            .expect("the URL of a test")
            .busy_timeout(std::time::Duration::from_secs(20));
        options.connect().await.expect("the file opens")
    }

    pub async fn postgres_connection(&self) -> sqlx::PgConnection {
        sqlx::PgConnection::connect(&self.url).await.expect("the cluster answers")
    }
}

fn sqlite_value(row: &sqlx::sqlite::SqliteRow, index: usize) -> Value {
    use sqlx::ValueRef as _;
    let value = row.try_get_raw(index).expect("a column");
    if value.is_null() {
        return Value::Null;
    }
    let kind = value.type_info().name().to_owned();
    match kind.as_str() {
        "INTEGER" | "BOOLEAN" => row.get::<i64, _>(index).into(),
        "REAL" => row.get::<f64, _>(index).into(),
        "TEXT" => row.get::<String, _>(index).into(),
        "BLOB" => id_or_hex(&row.get::<Vec<u8>, _>(index)),
        other => panic!("column {} is a {other}", row.column(index).name()),
    }
}

fn postgres_value(row: &sqlx::postgres::PgRow, index: usize) -> Value {
    match row.column(index).type_info().name() {
        "INT8" => row.get::<Option<i64>, _>(index).into(),
        "INT4" => row.get::<Option<i32>, _>(index).into(),
        "BOOL" => row.get::<Option<bool>, _>(index).into(),
        "FLOAT8" => row.get::<Option<f64>, _>(index).into(),
        "TEXT" | "VARCHAR" | "NAME" => row.get::<Option<String>, _>(index).into(),
        "UUID" => row.get::<Option<uuid::Uuid>, _>(index).map(|id| id.to_string()).into(),
        "BYTEA" => row.get::<Option<Vec<u8>>, _>(index).map_or(Value::Null, |bytes| id_or_hex(&bytes)),
        other => panic!("column {} is a {other}", row.column(index).name()),
    }
}

fn id_or_hex(bytes: &[u8]) -> Value {
    match uuid::Uuid::from_slice(bytes) {
        Ok(id) => id.to_string().into(),
        Err(_) => format!("{bytes:02x?}").into(),
    }
}

/// Runs each test body on SQLite and on PostgreSQL: `name::sqlite` and `name::postgres`.
macro_rules! on_both_databases {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident: $kind:ty) $body:block)+) => {$(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "not every body needs what its file imports")]
            use super::*;

            async fn body($database: $kind) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                body($crate::support::TestDatabase::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                body($crate::support::TestDatabase::postgres().await).await;
            }
        }
    )+};
}
pub(crate) use on_both_databases;
