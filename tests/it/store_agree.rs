//! Both databases give the same answers: seeded random operations, each run on both, and the tables compared at the end.

use crate::{
    store_agree_world::{Operation, Work, World, sorted},
    support::TestDatabase,
};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Error},
};

const STEPS: usize = 500;

/// The answer of one database; of an error only what both can say alike.
async fn run(db: &Db, work: Work) -> String {
    match db.transaction("test", move |tx| work(tx)).await {
        Ok(answer) => answer,
        Err(Error::Sql(sqlx::Error::Database(error))) if !matches!(error.kind(), sqlx::error::ErrorKind::Other) => {
            format!("refused: {:?}", error.kind())
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The tables that the operations write to.
const USED: [&str; 12] = [
    "attempt",
    "checkpoint",
    "dead_letter",
    "event",
    "idempotency_key",
    "inbox",
    "outbox",
    "protocol_number",
    "setting",
    "step_cache",
    "task",
    "task_callback",
];

async fn tables(database: &TestDatabase) -> Vec<String> {
    let mut rows = Vec::new();
    for table in USED {
        let found = database.fetch(&format!("SELECT * FROM {table}")).await;
        rows.extend(sorted(found).into_iter().map(|row| format!("{table}: {row}")));
    }
    rows
}

async fn agree(seed: u64) {
    let (sqlite, postgres) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    let (one, other) = (sqlite.open(Clock::system(), Entropy::seeded(1)).await, postgres.open(Clock::system(), Entropy::seeded(1)).await);
    let mut world = World::new(seed);
    for step in 0..STEPS {
        let Operation { text, work } = world.next();
        let (on_sqlite, on_postgres) = tokio::join!(run(&one, work.clone()), run(&other, work));
        assert_eq!(on_sqlite, on_postgres, "seed {seed}, step {step}: SQLite and PostgreSQL differ on\n{text}");
    }
    let (on_sqlite, on_postgres) = (tables(&sqlite).await, tables(&postgres).await);
    for (row, other) in on_sqlite.iter().zip(&on_postgres) {
        assert_eq!(row, other, "seed {seed}: the tables differ at the end");
    }
    assert_eq!(on_sqlite.len(), on_postgres.len(), "seed {seed}: the tables differ at the end");
    // Agreeing that nothing happens would prove nothing.
    for table in USED {
        assert!(on_sqlite.iter().any(|row| row.starts_with(&format!("{table}: "))), "seed {seed} left nothing in {table}");
    }
    assert_eq!(sqlite.number("SELECT count(DISTINCT status) FROM task").await, 5, "seed {seed} did not bring tasks into every status");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_1() {
    agree(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_2() {
    agree(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_agree_on_seed_3() {
    agree(3).await;
}
