//! Starting on a database that is fresh, old, newer or not ours.

use crate::support::{TestDatabase, on_both_databases};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Dialect, Error, Options},
};
use sqlx::{
    SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

fn options(database: &TestDatabase, migrate: bool) -> Options {
    Options { migrate, ..database.options(Clock::system(), Entropy::seeded(1)) }
}

async fn refusal(database: &TestDatabase, migrate: bool) -> String {
    match Db::open(options(database, migrate)).await {
        Err(error @ Error::Schema(_)) => {
            assert!(!error.is_unavailable(), "waiting will not help");
            error.to_string()
        }
        other => panic!("it should be refused: {other:?}"),
    }
}

on_both_databases! {
    /// D-02: whoever comes first migrates, the others wait; nobody fails.
    async fn eight_starts_at_the_same_moment(database: TestDatabase) {
        for round in 0..20 {
            let fresh = database.another().await;
            let starts = (0..8).map(|_| tokio::spawn(Db::open(options(&fresh, true))));
            for start in futures::future::join_all(starts).await {
                start.expect("no panic").unwrap_or_else(|error| panic!("round {round}: {error:?}")).close().await;
            }
            assert_eq!(fresh.number("SELECT count(*) FROM _sqlx_migrations").await, migrations());
        }
    }

    /// D-02, and an upgrade: the schema is an earlier one, with a row in it, and eight start at once.
    async fn eight_starts_on_the_schema_before(database: TestDatabase) {
        for round in 0..5 {
            let old = database.another().await;
            let first = match old.dialect {
                Dialect::Sqlite => include_str!("../../migrations/sqlite/0001_initial.sql"),
                Dialect::Postgres => include_str!("../../migrations/postgres/0001_initial.sql"),
            };
            let migration = Migration::new(1, "initial".into(), MigrationType::Simple, first.into_sql_str(), false);
            let migrator = Migrator::with_migrations(vec![migration]);
            match old.dialect {
                Dialect::Sqlite => {
                    std::fs::File::create(old.data_dir.path().join("test.db")).expect("an empty file is an empty database");
                    migrator.run_direct(None, &mut old.sqlite_connection().await, false).await
                }
                Dialect::Postgres => migrator.run_direct(None, &mut old.postgres_connection().await, false).await,
            }
            .expect("the first schema");
            old.execute("INSERT INTO setting (name, value) VALUES ('before', 'kept')").await;
            let starts = (0..8).map(|_| tokio::spawn(Db::open(options(&old, true))));
            for start in futures::future::join_all(starts).await {
                start.expect("no panic").unwrap_or_else(|error| panic!("round {round}: {error:?}")).close().await;
            }
            assert_eq!(old.fetch("SELECT value FROM setting WHERE name = 'before'").await[0][0], "kept");
            assert!(old.number("SELECT MAX(version) FROM _sqlx_migrations").await > 1);
        }
    }

    async fn a_database_that_was_never_migrated_is_refused(database: TestDatabase) {
        let said = refusal(&database, false).await;
        assert!(said.contains("run `protocol-bridge migrate` first"), "{said}");
        if database.dialect == Dialect::Sqlite {
            assert!(!database.data_dir.path().join("test.db").exists(), "looking must not make a file");
        }
        Db::open(options(&database, true)).await.expect("asked to migrate").close().await;
        Db::open(options(&database, false)).await.expect("nothing is missing any more").close().await;
    }

    async fn a_database_of_a_newer_version_is_refused(database: TestDatabase) {
        Db::open(options(&database, true)).await.expect("it opens").close().await;
        database
            .execute("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', true, '00', 0)")
            .await;
        for migrate in [true, false] {
            let said = refusal(&database, migrate).await;
            assert!(said.contains("migration 9999") && said.contains("protocol-bridge migrate"), "{said}");
        }
    }

    async fn a_migration_that_is_not_ours_is_refused(database: TestDatabase) {
        Db::open(options(&database, true)).await.expect("it opens").close().await;
        database.execute("UPDATE _sqlx_migrations SET checksum = '00'").await;
        for migrate in [true, false] {
            let said = refusal(&database, migrate).await;
            assert!(said.contains("migration 1 of the database is not the one of this program"), "{said}");
        }
    }
}

/// What is no database of ours is left as it was, and said plainly.
#[tokio::test(flavor = "multi_thread")]
async fn strange_urls_are_refused() {
    for url in ["mysql://localhost/x", "/var/lib/x.db", "sqlite::memory:"] {
        let options = Options {
            url: url.to_owned(),
            listen_url: None,
            max_connections: 1,
            migrate: true,
            clock: Clock::system(),
            entropy: Entropy::seeded(1),
        };
        assert!(matches!(Db::open(options).await, Err(Error::Schema(_))), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_makes_its_folder() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("not/yet/there/bridge.db");
    let url = format!("sqlite:{}", path.display());
    let options = Options { url, listen_url: None, max_connections: 1, migrate: true, clock: Clock::system(), entropy: Entropy::seeded(1) };
    Db::open(options).await.expect("it opens").close().await;
    assert!(path.exists());
    let left: Vec<_> =
        std::fs::read_dir(path.parent().expect("a folder")).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("-wal")), "closing folds the log back into the file: {left:?}");
}

/// How many there are.
fn migrations() -> i64 {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite");
    std::fs::read_dir(folder).expect("the migrations").count().try_into().expect("a few")
}
