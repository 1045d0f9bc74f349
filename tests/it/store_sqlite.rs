//! What is SQLite's own: one writer, a queue before it, and other processes that use the same file.

use crate::support::{TestDatabase, within};
use futures::{FutureExt as _, future::join_all};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Error, setting},
};
use sqlx::Executor as _;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

async fn open(database: &TestDatabase) -> Db {
    database.open(Clock::system(), Entropy::seeded(1)).await
}

async fn put(db: &Db, name: String) -> Result<(), Error> {
    db.transaction("test", move |tx| {
        let name = name.clone();
        Box::pin(async move { setting::put(tx, &name, "there").await })
    })
    .await
}

/// D-01: writers, readers and an outside process that writes all the time: nobody ever sees "database is locked".
#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_a_locked_database() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let end = Instant::now() + Duration::from_secs(4);
    let (written, read) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for writer in 0..50 {
        let (db, written) = (db.clone(), written.clone());
        tasks.push(tokio::spawn(async move {
            let mut n = 0;
            while Instant::now() < end {
                // Reads, then writes: the case in which a deferred transaction is refused at once, whatever the busy timeout.
                let name = format!("{writer}/{n}");
                db.transaction("test", move |tx| {
                    let name = name.clone();
                    Box::pin(async move {
                        assert_eq!(setting::get(tx, &name).await?, None);
                        setting::put(tx, &name, "there").await
                    })
                })
                .await
                .expect("a writer is never refused");
                written.fetch_add(1, Ordering::Relaxed);
                n += 1;
            }
        }));
    }
    for _ in 0..10 {
        let (db, read) = (db.clone(), read.clone());
        tasks.push(tokio::spawn(async move {
            while Instant::now() < end {
                db.read("test", |tx| Box::pin(setting::get(tx, "0/0"))).await.expect("a reader is never refused");
                read.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let mut outside = database.sqlite_connection().await;
    let outside = tokio::spawn(async move {
        let mut n = 0_u64;
        while Instant::now() < end {
            outside
                .execute("BEGIN IMMEDIATE; INSERT INTO audit (id, at_us, actor, address, action, object, request_id) SELECT randomblob(16), 0, '', '', '', '', ''; COMMIT")
                .await
                .expect("the outside process waits its turn");
            n += 1;
        }
        n
    });
    for task in tasks {
        task.await.expect("no error");
    }
    let outside = outside.await.expect("no error");
    let written = written.load(Ordering::Relaxed);
    assert_eq!(database.number("SELECT count(*) FROM setting").await, i64::try_from(written).expect("a small number"));
    assert_eq!(database.number("SELECT count(*) FROM audit").await, i64::try_from(outside).expect("a small number"));
    let read = read.load(Ordering::Relaxed);
    assert!(written > 0 && outside > 0 && read > 0, "each of them got on: {written} written, {outside} outside, {read} read");
}

/// Readers whose transactions overlap keep SQLite from ever beginning its log anew; it stays bounded all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_stays_bounded_however_much_is_written_while_somebody_always_reads() {
    const MIB: u64 = 1024 * 1024;
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let log = database.data_dir.path().join("test.db-wal");
    let size = || std::fs::metadata(&log).map_or(0, |log| log.len());
    let written = AtomicBool::new(false);
    let read = |offset: u64| {
        let (db, written) = (&db, &written);
        async move {
            tokio::time::sleep(Duration::from_millis(offset)).await;
            while !written.load(Ordering::Relaxed) {
                let held = db.read("test", |tx| {
                    Box::pin(async move {
                        setting::get(tx, "name").await?;
                        // The snapshot is held on purpose.
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        Ok(())
                    })
                });
                held.await.expect("it reads");
            }
        }
    };
    let largest = AtomicU64::new(0);
    let write = async {
        for round in 0..40 {
            let puts = (0..64).map(|n| {
                let value: Arc<str> = format!("{round}-{n}").repeat(64 * 1024 / 8).into();
                db.transaction("test", move |tx| {
                    let value = Arc::clone(&value);
                    Box::pin(async move { setting::put(tx, &format!("{n}"), &value).await })
                })
            });
            for put in join_all(puts).await {
                put.expect("it commits");
            }
            largest.fetch_max(size(), Ordering::Relaxed);
        }
        written.store(true, Ordering::Relaxed);
    };
    futures::join!(write, read(0), read(10));
    let largest = largest.load(Ordering::Relaxed);
    assert!(largest <= 64 * MIB, "the log grew to {} MiB", largest / MIB);
    assert!(largest > 16 * MIB, "it was never tried hard: {} MiB", largest / MIB);
}

/// Another process holds the write lock for longer than one busy timeout lasts.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_write_of_another_process_is_waited_for() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let mut outside = database.sqlite_connection().await;
    outside.execute("BEGIN IMMEDIATE").await.expect("it is free");
    let all = (0..20).map(|n| put(&db, format!("{n}")));
    let mut all = Box::pin(join_all(all));
    assert!((&mut all).now_or_never().is_none(), "they wait");
    // Reading goes on meanwhile.
    assert_eq!(db.read("test", |tx| Box::pin(setting::get(tx, "0"))).await.expect("a reader does not wait"), None);
    let waited = tokio::time::timeout(Duration::from_millis(5_500), &mut all).await;
    assert!(waited.is_err(), "still waiting after the busy timeout of 5 s");
    outside.execute("COMMIT").await.expect("it commits");
    for answer in within(Duration::from_secs(10), "all commit", all).await {
        answer.expect("it was only late");
    }
}

/// Whatever waits for the writer, an urgent transaction is next: a group that is under way is cut short for it.
#[tokio::test(flavor = "multi_thread")]
async fn urgent_overtakes_a_full_queue() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let first = Hold::new(&db);
    first.is_held().await;
    // Behind the first, which has the writer to itself, a second that will share its group with what is queued after it.
    let second = Hold::new(&db);
    let mut calls: Vec<_> = (0..2_000).map(|n| Box::pin(put(&db, format!("{n}")))).collect();
    assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()), "all are queued");
    first.release().await;
    second.is_held().await;
    // How many went before it, as it sees it itself.
    let mut urgent = Box::pin(db.urgent("urgent", |tx| Box::pin(count_settings(tx))));
    assert!((&mut urgent).now_or_never().is_none(), "queued");
    second.release().await;
    assert_eq!(urgent.await.expect("it commits"), 0);
    for call in join_all(calls).await {
        call.expect("it commits");
    }
    assert_eq!(database.number("SELECT count(*) FROM setting").await, 2_000);
}

/// A transaction that stays with the writer until it is released, so that what is queued behind it stays queued.
struct Hold {
    held: Arc<Semaphore>,
    release: Arc<Semaphore>,
    call: tokio::task::JoinHandle<Result<(), Error>>,
}

impl Hold {
    fn new(db: &Db) -> Self {
        let (held, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (holds, released) = (held.clone(), release.clone());
        let mut call = Box::pin({
            let db = db.clone();
            async move {
                db.transaction("hold", move |_tx| {
                    let (holds, released) = (holds.clone(), released.clone());
                    Box::pin(async move {
                        holds.add_permits(1);
                        released.acquire().await.expect("never closed").forget();
                        Ok(())
                    })
                })
                .await
            }
        });
        assert!((&mut call).now_or_never().is_none(), "queued now, not at some later time");
        Self { held, release, call: tokio::spawn(call) }
    }

    async fn is_held(&self) {
        within(Duration::from_secs(20), "the writer is held", self.held.acquire()).await.expect("never closed").forget();
    }

    async fn release(self) {
        self.release.add_permits(1);
        within(Duration::from_secs(20), "it commits", self.call).await.expect("no panic").expect("it commits");
    }
}

async fn count_settings(tx: &mut protocol_bridge::store::Tx<'_>) -> Result<i64, Error> {
    match tx {
        protocol_bridge::store::Tx::Sqlite(connection) => {
            Ok(sqlx::query_scalar("SELECT count(*) FROM setting").fetch_one(&mut **connection).await?)
        }
        protocol_bridge::store::Tx::Postgres(..) => unreachable!("a test of SQLite"),
    }
}

/// All queries of one read see the same moment, whatever is committed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_sees_one_snapshot() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let writer = db.clone();
    let (first, second) = db
        .read("test", move |tx| {
            let writer = writer.clone();
            Box::pin(async move {
                let first = setting::get(tx, "later").await?;
                put(&writer, "later".to_owned()).await?;
                Ok((first, setting::get(tx, "later").await?))
            })
        })
        .await
        .expect("it reads");
    assert_eq!((first, second), (None, None));
    assert_eq!(db.read("test", |tx| Box::pin(setting::get(tx, "later"))).await.expect("it reads").as_deref(), Some("there"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_cannot_write() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let answer = db.read("test", |tx| Box::pin(setting::put(tx, "x", "y"))).await;
    assert!(matches!(answer, Err(Error::Sql(_))), "{answer:?}");
}

/// Closing waits for what is queued, and for nothing that comes later.
#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_is_queued() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let hold = Hold::new(&db);
    let mut calls: Vec<_> = (0..300).map(|n| Box::pin(put(&db, format!("{n}")))).collect();
    assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()), "all are queued");
    let mut close = Box::pin(db.close());
    assert!((&mut close).now_or_never().is_none(), "it waits for them");
    hold.release().await;
    within(Duration::from_secs(20), "the store is closed", close).await;
    for call in join_all(calls).await {
        call.expect("it was queued before the close");
    }
    assert!(matches!(put(&db, "late".to_owned()).await, Err(Error::Closed)));
}

/// The whole file is full: members of a group get an error that says so, and the store works again when there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_said_and_survived() {
    let database = TestDatabase::sqlite().await;
    let db = open(&database).await;
    let pages = |db: Db, limit: &'static str| async move {
        db.transaction("test", move |tx| {
            Box::pin(async move {
                let protocol_bridge::store::Tx::Sqlite(connection) = tx else { unreachable!("a test of SQLite") };
                sqlx::query(limit).execute(&mut **connection).await?;
                Ok(())
            })
        })
        .await
        .expect("a limit for the writer's connection");
    };
    // SQLite reports a database at its page limit exactly as it does a full disk.
    pages(db.clone(), "PRAGMA max_page_count = 200").await;
    let big = "x".repeat(100_000);
    let failed = Arc::new(AtomicBool::new(false));
    let calls = (0..40).map(|n| {
        let (db, big, failed) = (db.clone(), big.clone(), failed.clone());
        async move {
            let answer = db
                .transaction("test", move |tx| {
                    let big = big.clone();
                    Box::pin(async move { setting::put(tx, &format!("{n}"), &big).await })
                })
                .await;
            match &answer {
                Ok(()) => {}
                Err(error) => {
                    assert!(error.is_disk_full() && error.is_unavailable(), "{error:?}");
                    failed.store(true, Ordering::Relaxed);
                }
            }
            u32::from(answer.is_ok())
        }
    });
    let committed: u32 = join_all(calls).await.into_iter().sum();
    assert!(failed.load(Ordering::Relaxed));
    assert_eq!(database.number("SELECT count(*) FROM setting").await, i64::from(committed), "who was told so is there, and nobody else");
    pages(db.clone(), "PRAGMA max_page_count = 100000").await;
    put(&db, "room again".to_owned()).await.expect("it commits");
}
