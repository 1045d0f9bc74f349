//! Migrations: embedded, applied when the store is opened, or only looked at.
//!
//! Each runs in a transaction together with its row in `_sqlx_migrations`: after a crash in the middle it has not happened. Those who start at the same moment
//! wait for each other: on PostgreSQL for an advisory lock, on SQLite, where sqlx takes none, for a lock on a file beside the database.

use super::{Error, Result, Sql, Tx, with_tx};
use crate::base::chain::chain;
use sqlx::{
    PgConnection, SqlSafeStr as _, SqliteConnection,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};
use std::{fs::File, path::Path};

/// Version, name, text: in order, never changed once released.
type Texts = &'static [(i64, &'static str, &'static str)];

const SQLITE: Texts = &[
    (1, "initial", include_str!("../../migrations/sqlite/0001_initial.sql")),
    (2, "task_follower", include_str!("../../migrations/sqlite/0002_task_follower.sql")),
    (3, "retention", include_str!("../../migrations/sqlite/0003_retention.sql")),
    (4, "audit_detail", include_str!("../../migrations/sqlite/0004_audit_detail.sql")),
    (5, "gauges", include_str!("../../migrations/sqlite/0005_gauges.sql")),
    (6, "tracestate", include_str!("../../migrations/sqlite/0006_tracestate.sql")),
    (7, "event_position", include_str!("../../migrations/sqlite/0007_event_position.sql")),
    (8, "deliveries", include_str!("../../migrations/sqlite/0008_deliveries.sql")),
];
const POSTGRES: Texts = &[
    (1, "initial", include_str!("../../migrations/postgres/0001_initial.sql")),
    (2, "task_follower", include_str!("../../migrations/postgres/0002_task_follower.sql")),
    (3, "retention", include_str!("../../migrations/postgres/0003_retention.sql")),
    (4, "audit_detail", include_str!("../../migrations/postgres/0004_audit_detail.sql")),
    (5, "gauges", include_str!("../../migrations/postgres/0005_gauges.sql")),
    (6, "tracestate", include_str!("../../migrations/postgres/0006_tracestate.sql")),
    (7, "event_position", include_str!("../../migrations/postgres/0007_event_position.sql")),
    (8, "deliveries", include_str!("../../migrations/postgres/0008_deliveries.sql")),
];
const TABLE: &str = "_sqlx_migrations";

const APPLIED: Sql = Sql::same("SELECT COUNT(*) FROM _sqlx_migrations WHERE success AND version <= $1");

pub const ALL: &[(&str, Sql)] = &[("migrate::applied", APPLIED)];

/// Whether the schema has everything that this program needs. What a newer program has added does not count: during a rolling upgrade both run.
pub async fn is_current(tx: &mut Tx<'_>) -> Result<bool> {
    let texts = if matches!(tx, Tx::Sqlite(_)) { SQLITE } else { POSTGRES };
    let newest = texts.last().map_or(0, |(version, ..)| *version);
    let applied: i64 = with_tx!(tx, APPLIED, |connection, sql| sqlx::query_scalar(sql).bind(newest).fetch_one(connection).await)?;
    Ok(usize::try_from(applied) == Ok(texts.len()))
}

pub(super) async fn sqlite(connection: &mut SqliteConnection, apply: bool) -> Result<()> {
    bring_up_to_date(connection, &migrator(SQLITE), apply).await
}

pub(super) async fn postgres(connection: &mut PgConnection, apply: bool) -> Result<()> {
    bring_up_to_date(connection, &migrator(POSTGRES), apply).await
}

/// Waits for the lock file beside a SQLite database and holds it until dropped; the system releases it if the process dies.
pub(super) async fn lock(database: &Path) -> Result<File> {
    let mut path = database.as_os_str().to_owned();
    path.push(".migrate-lock");
    let file = |source| Error::System { what: format!("{} cannot be opened", Path::new(&path).display()), source };
    let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(file)?;
    // On a thread for blocking calls: whoever holds it does so for as long as a migration takes.
    let locked = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await.map_err(|_| Error::Closed)?;
    locked.map_err(file)
}

fn migrator(texts: Texts) -> Migrator {
    let migrations = texts
        .iter()
        .map(|&(version, name, text)| Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false))
        .collect();
    Migrator::with_migrations(migrations)
}

async fn bring_up_to_date<C: Migrate>(connection: &mut C, migrator: &Migrator, apply: bool) -> Result<()> {
    if apply {
        return migrator.run_direct(None, connection, false).await.map_err(explain);
    }
    let applied = match connection.list_applied_migrations(TABLE).await {
        Ok(applied) => applied,
        Err(error) if is_missing_table(&error) => Vec::new(),
        Err(error) => return Err(explain(error)),
    };
    if let Some(unknown) = applied.iter().find(|applied| !migrator.version_exists(applied.version)) {
        return Err(explain(MigrateError::VersionMissing(unknown.version)));
    }
    for migration in migrator.iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            Some(applied) if applied.checksum == migration.checksum => {}
            Some(_) => return Err(explain(MigrateError::VersionMismatch(migration.version))),
            None => {
                return Err(Error::Schema(format!(
                    "the database lacks migration {} and database.migrate is off: run `protocol-bridge migrate` first",
                    migration.version
                )));
            }
        }
    }
    Ok(())
}

/// How a database's schema compares with this program's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// How many of this program's migrations it has.
    pub applied: usize,
    /// Those that it lacks: version and name.
    pub pending: Vec<(i64, &'static str)>,
    /// Versions that this program does not know.
    pub unknown: Vec<i64>,
    /// Versions that were something else when they were applied.
    pub altered: Vec<i64>,
}

pub(super) async fn compare_sqlite(connection: &mut SqliteConnection) -> Result<Schema> {
    compare(connection, SQLITE).await
}

pub(super) async fn compare_postgres(connection: &mut PgConnection) -> Result<Schema> {
    compare(connection, POSTGRES).await
}

async fn compare<C: Migrate>(connection: &mut C, texts: Texts) -> Result<Schema> {
    let applied = match connection.list_applied_migrations(TABLE).await {
        Ok(applied) => applied,
        Err(error) if is_missing_table(&error) => Vec::new(),
        Err(error) => return Err(explain(error)),
    };
    let ours = migrator(texts);
    let mut schema = Schema {
        unknown: applied.iter().map(|one| one.version).filter(|version| !ours.version_exists(*version)).collect(),
        ..Schema::default()
    };
    for (migration, &(version, name, _)) in ours.iter().zip(texts) {
        match applied.iter().find(|applied| applied.version == version) {
            Some(applied) if applied.checksum == migration.checksum => schema.applied += 1,
            Some(_) => schema.altered.push(version),
            None => schema.pending.push((version, name)),
        }
    }
    Ok(schema)
}

fn explain(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(error) => Error::Sql(error),
        MigrateError::VersionMissing(version) => Error::Schema(format!(
            "the database has migration {version}, which this program does not know: a newer version of it was here. Start that version; \
             `protocol-bridge migrate` of this one cannot go back"
        )),
        MigrateError::VersionMismatch(version) => Error::Schema(format!(
            "migration {version} of the database is not the one of this program: they come from different builds. Start the one that ran \
             `protocol-bridge migrate` here"
        )),
        MigrateError::ExecuteMigration(error, version) => {
            let error = Error::Sql(error);
            if error.is_unavailable() { error } else { Error::Schema(format!("migration {version} failed: {}", chain(&error))) }
        }
        other => Error::Schema(other.to_string()),
    }
}

fn is_missing_table(error: &MigrateError) -> bool {
    matches!(error, MigrateError::Execute(sqlx::Error::Database(error))
        if error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_embedded_in_order() {
        for (folder, texts) in [("sqlite", SQLITE), ("postgres", POSTGRES)] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder);
            let mut files: Vec<_> = std::fs::read_dir(folder)
                .expect("the folder")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
                .collect();
            files.sort();
            let embedded: Vec<_> = texts.iter().map(|(version, name, _)| format!("{version:04}_{name}.sql")).collect();
            assert_eq!(files, embedded);
        }
    }
}
