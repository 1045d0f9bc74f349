//! What `Db` promises about transactions.

use crate::support::{TestDatabase, eventually, on_both_databases, within};
use futures::FutureExt as _;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Error, Fault, Tx, setting},
};
use sqlx::{ConnectOptions as _, Executor as _, sqlite::SqliteConnectOptions};
use std::{
    str::FromStr as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

const LIMIT: Duration = Duration::from_secs(20);

async fn open(database: &TestDatabase) -> Db {
    database.open(Clock::system(), Entropy::seeded(1)).await
}

async fn put(db: &Db, transaction: &'static str, name: String) -> Result<(), Error> {
    db.transaction(transaction, move |tx| {
        let name = name.clone();
        Box::pin(async move { setting::put(tx, &name, "there").await })
    })
    .await
}

async fn get(db: &Db, name: &'static str) -> Option<String> {
    db.read("look", move |tx| Box::pin(setting::get(tx, name))).await.expect("reading works")
}

on_both_databases! {
    /// One member of a group that fails, or panics, after it has written takes nothing with it and hurts no neighbour.
    async fn a_transaction_is_undone_alone(database: TestDatabase) {
        let db = open(&database).await;
        let all = (0..60).map(|n| {
            let db = db.clone();
            async move {
                db.transaction("test", move |tx| {
                    Box::pin(async move {
                        setting::put(tx, &format!("{n}"), "there").await?;
                        match n % 3 {
                            0 => Ok(n),
                            1 => Err(Error::Schema("on purpose".to_owned())),
                            _ => panic!("on purpose"),
                        }
                    })
                })
                .await
            }
        });
        for (n, answer) in futures::future::join_all(all).await.into_iter().enumerate() {
            match n % 3 {
                0 => assert_eq!(answer.expect("kept"), n),
                1 => assert!(matches!(answer, Err(Error::Schema(_))), "{answer:?}"),
                _ => assert!(matches!(answer, Err(Error::Panicked("test"))), "{answer:?}"),
            }
        }
        assert_eq!(database.number("SELECT count(*) FROM setting").await, 20);
        db.close().await;
        assert!(matches!(put(&db, "test", "late".to_owned()).await, Err(Error::Closed)));
    }

    async fn a_dropped_caller_does_not_stop_it(database: TestDatabase) {
        let db = open(&database).await;
        // One poll hands it over; then the caller is gone.
        let _ = put(&db, "test", "dropped".to_owned()).now_or_never();
        eventually(LIMIT, "what the dropped caller wrote is there", || async { get(&db, "dropped").await.is_some() }).await;
    }

    async fn faults_happen_where_they_are_armed(database: TestDatabase) {
        let db = open(&database).await;
        db.faults().arm("test", Fault::FailBefore, 1);
        assert!(matches!(put(&db, "test", "before".to_owned()).await, Err(Error::Injected("test"))));
        assert_eq!(get(&db, "before").await, None);
        db.faults().arm("test", Fault::FailAfter, 1);
        assert!(matches!(put(&db, "test", "after".to_owned()).await, Err(Error::Injected("test"))));
        assert_eq!(get(&db, "after").await.as_deref(), Some("there"));
        put(&db, "test", "healed".to_owned()).await.expect("nothing is armed any more");
    }

    async fn a_delayed_transaction_waits_for_the_clock(database: TestDatabase) {
        let clock = Clock::manual("2026-11-30T12:00:00Z".parse().expect("a time"));
        let db = database.open(clock.clone(), Entropy::seeded(1)).await;
        db.faults().arm("test", Fault::Delay(Duration::from_secs(3)), 1);
        let call = put(&db, "test", "delayed".to_owned());
        futures::pin_mut!(call);
        assert!((&mut call).now_or_never().is_none());
        put(&db, "other", "beside".to_owned()).await.expect("the others do not wait");
        assert_eq!(get(&db, "delayed").await, None);
        clock.advance(Duration::from_secs(3));
        within(LIMIT, "the delayed transaction ends", call).await.expect("it commits");
        assert_eq!(get(&db, "delayed").await.as_deref(), Some("there"));
    }

    async fn repeats_of_one_key_agree(database: TestDatabase) {
        let db = open(&database).await;
        let all = (0..20).map(|n| {
            let db = db.clone();
            async move { db.transaction("test", move |tx| Box::pin(async move { setting::put_if_absent(tx, "one", &format!("{n}")).await })).await }
        });
        let answers = futures::future::join_all(all).await;
        let first = answers[0].as_ref().expect("it commits");
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer == first)), "{answers:?}");
        assert_eq!(get(&db, "one").await.as_ref(), Some(first));
    }

    /// Another connection was in the way, and the database said so: the same work is run again, after what its first run wrote was undone.
    async fn a_conflict_is_repeated(database: TestDatabase) {
        let db = open(&database).await;
        let runs = lose(&db, &database, 1).await;
        assert_eq!(runs.expect("it commits"), 2);
        assert_eq!(database.number("SELECT count(*) FROM setting").await, 1);
    }

    /// Who loses every time is told so in the end.
    async fn repeating_has_a_limit(database: TestDatabase) {
        let db = open(&database).await;
        let answer = lose(&db, &database, u32::MAX).await;
        assert!(answer.as_ref().is_err_and(Error::is_unavailable), "{answer:?}");
        assert_eq!(database.number("SELECT count(*) FROM setting").await, 0);
        put(&db, "test", "next".to_owned()).await.expect("the others are not held up");
    }
}

/// Runs a transaction whose first `times` runs meet a real conflict after they have written; answers how often it ran.
async fn lose(db: &Db, database: &TestDatabase, times: u32) -> Result<u32, Error> {
    let runs = Arc::new(AtomicU32::new(0));
    let url = database.url.clone();
    db.transaction("test", move |tx| {
        let (runs, url) = (runs.clone(), url.clone());
        Box::pin(async move {
            let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
            setting::put(tx, &format!("run {run}"), "there").await?;
            if run <= times {
                match tx {
                    Tx::Sqlite(_) => {
                        // The writer has the write lock, so whoever wants it too, and does not wait, is refused.
                        let options = SqliteConnectOptions::from_str(&url)?.busy_timeout(Duration::ZERO);
                        options.connect().await?.execute("BEGIN IMMEDIATE").await?;
                    }
                    Tx::Postgres(connection, _) => {
                        connection.execute("DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END $$").await?;
                    }
                }
            }
            Ok(run)
        })
    })
    .await
}
