//! Pick-up and lists with a million finished tasks and sent messages in the tables, beside empty ones, while a foreign transaction stays open.

use crate::{
    pickup,
    report::{Report, milliseconds, percentile, spread},
    stand::{self, Stand},
    support::TestDatabase,
};
use protocol_bridge::{
    engine::{Engine, TaskFilter},
    store::Dialect,
};
use sqlx::Executor as _;
use std::time::{Duration, Instant};

const PICKUPS: usize = 200;
const LISTS: usize = 50;

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let on = stand::name(&database);
        let db = stand::open(&database).await;
        let empty = (pickup::measure(&database, &db, PICKUPS).await, lists(&stand::engine_at_rest(&database, &db)).await);
        let started = Instant::now();
        fill(&database).await;
        println!("  filled in {:.0} s", started.elapsed().as_secs_f64());
        // Somebody's forgotten psql: what is deleted or updated from here on cannot be cleaned up behind us.
        let mut forgotten = forget(&database).await;
        let full = (pickup::measure(&database, &db, PICKUPS).await, lists(&stand::engine_at_rest(&database, &db)).await);
        compare(report, "pick-up, tables empty → a million rows", on, empty.0, full.0);
        compare(report, "list of tasks, tables empty → a million rows", on, empty.1, full.1);
        let burst = burst(&database, &db, 1000).await;
        report.add("1,000 tasks at once over a million rows", on, format!("all done in {}", milliseconds(burst)), "");
        forgotten.end().await;
        db.close().await;
    }
}

fn compare(report: &mut Report, what: &str, on: &str, mut empty: Vec<Duration>, mut full: Vec<Duration>) {
    let ratio = percentile(&mut full, 0.5).as_secs_f64() / percentile(&mut empty, 0.5).as_secs_f64();
    report.add(what, on, format!("{} → {} ({ratio:.1}×)", spread(&mut empty), spread(&mut full)), "≤ 2×");
}

async fn lists(engine: &Engine) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..LISTS {
        for filter in [TaskFilter::default(), TaskFilter { caller: Some("bench".to_owned()), ..TaskFilter::default() }] {
            let started = Instant::now();
            engine.tasks(filter, None, 50).await.expect("readable");
            took.push(started.elapsed());
        }
    }
    took
}

async fn burst(database: &TestDatabase, db: &protocol_bridge::store::Db, count: usize) -> Duration {
    stand::submit(&stand::engine_at_rest(database, db), count).await;
    let started = Instant::now();
    let (_engine, shutdown) = stand::engine(database, db, stand::Noop::new(|_| {}));
    stand::drained(database).await;
    let took = started.elapsed();
    shutdown.force();
    shutdown.finished().await;
    took
}

/// A transaction that somebody forgot.
enum Forgotten {
    Sqlite(sqlx::SqliteConnection),
    Postgres(sqlx::PgConnection),
}

async fn forget(database: &TestDatabase) -> Forgotten {
    match database.dialect {
        Dialect::Sqlite => {
            let mut connection = database.sqlite_connection().await;
            connection.execute("BEGIN; SELECT COUNT(*) FROM setting").await.expect("it reads");
            Forgotten::Sqlite(connection)
        }
        Dialect::Postgres => {
            let mut connection = database.postgres_connection().await;
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("it reads");
            Forgotten::Postgres(connection)
        }
    }
}

impl Forgotten {
    async fn end(&mut self) {
        match self {
            Self::Sqlite(connection) => drop(connection.execute("ROLLBACK").await),
            Self::Postgres(connection) => drop(connection.execute("ROLLBACK").await),
        }
    }
}

/// A million finished tasks with an attempt, a sent message and an inbox row each, of the last eighty days.
pub async fn fill(database: &TestDatabase) {
    let (series, id, analyze) = match database.dialect {
        Dialect::Sqlite => {
            ("WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 1000000)", "randomblob(16)", "ANALYZE")
        }
        Dialect::Postgres => ("WITH series AS (SELECT n FROM generate_series(1, 1000000) AS n)", "gen_random_uuid()", "VACUUM ANALYZE"),
    };
    let now = "1796000000000000";
    let at = format!("{now} - n * 6900000");
    database
        .execute(&format!(
            "{series} INSERT INTO task (id, kind, agenda_id, payload, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, \
             steps_done, steps_known, caller, revision, created_us, started_us, finished_us) \
             SELECT {id}, CASE WHEN n % 2 = 0 THEN 'demo' ELSE 'protocol' END, 'agenda-' || (n % 5000), '{{\"agendaId\":\"agenda\"}}', \
             CASE WHEN n % 50 = 0 THEN 'CANCELLED' ELSE 'COMPLETED' END, 1, 1, 5, {at}, {at}, 4, 4, \
             CASE WHEN n % 3 = 0 THEN 'bench' ELSE 'caller-' || (n % 20) END, 3, {at}, {at}, {at} FROM series"
        ))
        .await;
    database
        .execute(&format!(
            "INSERT INTO attempt (id, task_id, claim_no, attempt_no, worker_id, started_us, ended_us, outcome) \
             SELECT {id}, id, 1, 1, id, started_us, finished_us, 'completed' FROM task"
        ))
        .await;
    database
        .execute(&format!(
            "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, published_us, created_us) \
             SELECT {id}, id, 'ProcessTask', payload, created_us, 0, created_us, created_us FROM task"
        ))
        .await;
    database.execute("INSERT INTO inbox (message_id, task_id, received_us) SELECT message_id, task_id, created_us FROM outbox").await;
    database.execute(analyze).await;
}
