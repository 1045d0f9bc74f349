//! What is PostgreSQL's own: connections that break, commits whose outcome is unknown, conflicts, limits of sessions.

use crate::support::{TestDatabase, eventually, postgres::Cluster};
use futures::future::join_all;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Error, Hints, Tx, setting},
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::Barrier;

const LIMIT: Duration = Duration::from_secs(20);

async fn open(database: &TestDatabase) -> Db {
    database.open(Clock::system(), Entropy::seeded(1)).await
}

fn connection<'t>(tx: &'t mut Tx<'_>) -> &'t mut PgConnection {
    match tx {
        Tx::Postgres(connection, _) => connection,
        Tx::Sqlite(_) => unreachable!("a test of PostgreSQL"),
    }
}

async fn put(db: &Db, name: &'static str) -> Result<(), Error> {
    db.transaction("test", move |tx| Box::pin(setting::put(tx, name, "there"))).await
}

async fn get(db: &Db, name: &'static str) -> Option<String> {
    db.read("test", move |tx| Box::pin(setting::get(tx, name))).await.expect("it reads")
}

async fn process(tx: &mut Tx<'_>) -> Result<i32, Error> {
    Ok(sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection(tx)).await?)
}

/// Ends a server process and returns when it is gone.
async fn end(url: &str, process: i32) {
    let mut other = PgConnection::connect(url).await.expect("the cluster answers");
    sqlx::query("SELECT pg_terminate_backend($1, 5000)").bind(process).execute(&mut other).await.expect("it may be ended");
}

/// The connection is dead by the time of the COMMIT.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_on_a_broken_connection_is_unknown() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    let url = database.url.clone();
    let answer = db
        .transaction("test", move |tx| {
            let url = url.clone();
            Box::pin(async move {
                setting::put(tx, "unknown", "there").await?;
                end(&url, process(tx).await?).await;
                Ok(())
            })
        })
        .await;
    assert!(matches!(answer, Err(Error::CommitUnknown(_))), "{answer:?}");
    assert_eq!(get(&db, "unknown").await, None, "this time it did not happen");
    put(&db, "next").await.expect("the next one has a new connection");
}

/// The connection dies while the server is working on the COMMIT.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_cut_off_is_unknown() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    // A check at the end of the transaction that waits for a lock which the test holds.
    database
        .execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'; \
             CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON setting DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold()",
        )
        .await;
    let mut holder = database.postgres_connection().await;
    holder.execute("SELECT pg_advisory_lock(7)").await.expect("it is free");
    let call = tokio::spawn({
        let db = db.clone();
        async move { put(&db, "cut off").await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    eventually(LIMIT, "the COMMIT waits", || async { database.number(waiting).await == 1 }).await;
    holder
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
        )
        .await
        .expect("it may be ended");
    let answer = call.await.expect("no panic");
    assert!(matches!(answer, Err(Error::CommitUnknown(_))), "{answer:?}");
}

/// A COMMIT that the server refuses has not happened, and that is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_commit_is_not_unknown() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    database
        .execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''on purpose''; END'; \
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON setting DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    let answer = put(&db, "refused").await;
    assert!(matches!(&answer, Err(error @ Error::Sql(_)) if !error.is_unavailable()), "{answer:?}");
    assert_eq!(get(&db, "refused").await, None);
}

/// After an error PostgreSQL answers a COMMIT with a rollback and calls it a success; work that has swallowed the error must not be told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_swallowed_error_is_no_commit() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    let answer = db
        .transaction("test", |tx| {
            Box::pin(async move {
                setting::put(tx, "swallowed", "there").await?;
                let _ = connection(tx).execute("SELECT 1 / 0").await;
                Ok(())
            })
        })
        .await;
    assert!(matches!(answer, Err(Error::Sql(_))), "{answer:?}");
    assert_eq!(get(&db, "swallowed").await, None);
}

/// Two transactions that lock the same two rows the other way round: the one that the server sacrifices is run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_repeated() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    put(&db, "a").await.expect("it commits");
    put(&db, "b").await.expect("it commits");
    let (barrier, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    let both = [("a", "b"), ("b", "a")].map(|(first, second)| {
        let (db, barrier, runs) = (db.clone(), barrier.clone(), runs.clone());
        async move {
            db.transaction("test", move |tx| {
                let (barrier, runs) = (barrier.clone(), runs.clone());
                Box::pin(async move {
                    setting::put(tx, first, first).await?;
                    if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                        barrier.wait().await;
                    }
                    setting::put(tx, second, first).await
                })
            })
            .await
        }
    });
    for answer in join_all(both).await {
        answer.expect("both commit in the end");
    }
    assert!(runs.load(Ordering::SeqCst) > 2, "one of them was run again");
}

/// Every pooled connection is ended while it lies idle; the next calls do not notice.
#[tokio::test(flavor = "multi_thread")]
async fn ended_connections_are_replaced() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    fill_pool(&db).await;
    database
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    for answer in join_all((0..8).map(|_| put(&db, "next"))).await {
        answer.expect("it commits");
    }
    fill_pool(&db).await;
    database
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    assert_eq!(get(&db, "next").await.as_deref(), Some("there"));
}

/// The server restarts: while it is away the answer says "unavailable", afterwards everything goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_is_survived() {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster of our own");
    let database = TestDatabase::postgres_on(&cluster.url()).await;
    let db = open(&database).await;
    fill_pool(&db).await;
    cluster.stop_server();
    let answer = put(&db, "away").await;
    assert!(answer.as_ref().is_err_and(Error::is_unavailable), "{answer:?}");
    cluster.start_server();
    put(&db, "back").await.expect("the server is back");
    assert_eq!(get(&db, "back").await.as_deref(), Some("there"));
    db.close().await;
}

async fn fill_pool(db: &Db) {
    let barrier = Arc::new(Barrier::new(8));
    let all = (0..8).map(|_| {
        let (db, barrier) = (db.clone(), barrier.clone());
        async move {
            db.read("test", move |tx| {
                let barrier = barrier.clone();
                Box::pin(async move {
                    process(tx).await?;
                    barrier.wait().await;
                    Ok(())
                })
            })
            .await
            .expect("it reads");
        }
    });
    join_all(all).await;
    eventually(LIMIT, "the connections are back in the pool", || async { db.in_use() == 0 }).await;
}

/// A session that hangs gives its locks back.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_limits() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    for (name, limit) in [
        ("lock_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("statement_timeout", "30s"),
        ("application_name", "protocol-bridge"),
    ] {
        let found: String = db
            .read("test", move |tx| {
                Box::pin(async move { Ok(sqlx::query_scalar(AssertSqlSafe(format!("SHOW {name}"))).fetch_one(connection(tx)).await?) })
            })
            .await
            .expect("it reads");
        assert_eq!(found, limit, "{name}");
    }
}

/// Each query sees what is committed by then; no snapshot is kept open.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_sees_what_is_committed() {
    let database = TestDatabase::postgres().await;
    let db = open(&database).await;
    let writer = db.clone();
    let (first, second) = db
        .read("test", move |tx| {
            let writer = writer.clone();
            Box::pin(async move {
                let first = setting::get(tx, "later").await?;
                put(&writer, "later").await?;
                Ok((first, setting::get(tx, "later").await?))
            })
        })
        .await
        .expect("it reads");
    assert_eq!((first.as_deref(), second.as_deref()), (None, Some("there")));
}

/// What one process says the other hears, once and without what it did not say; nobody hears itself.
#[tokio::test(flavor = "multi_thread")]
async fn hints_go_to_the_others() {
    let database = TestDatabase::postgres().await;
    let (one, other) = (open(&database).await, open(&database).await);
    let mut here = one.wakeups().await.expect("it listens").expect("PostgreSQL does");
    let mut there = other.wakeups().await.expect("it listens").expect("PostgreSQL does");
    let (due, changed) = (Hints { due: true, changed: false }, Hints { due: false, changed: true });
    here.send(due).await.expect("it is sent");
    there.send(changed).await.expect("it is sent");
    assert_eq!(there.next().await.expect("a hint"), due);
    assert_eq!(here.next().await.expect("a hint"), changed, "and not its own");
    here.send(Hints::ALL).await.expect("it is sent");
    let both = (there.next().await.expect("a hint"), there.next().await.expect("a hint"));
    assert_eq!(both.0.and(both.1), Hints::ALL);
    here.probe().await.expect("it lives");
    database
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    assert!(here.probe().await.is_err());
    assert!(there.next().await.is_err());
}
