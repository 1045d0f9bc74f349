//! What the gauges read from the database, over tables in which everything that they look at is large: finished and waiting tasks, open dead letters, v1 counts.

use crate::{
    million,
    report::{Report, spread},
    stand::{self, Stand},
    support::TestDatabase,
};
use futures::FutureExt as _;
use protocol_bridge::store::{self, Db, Tx, dead_letter, legacy_call, outbox, task};
use std::time::{Duration, Instant};

const LOOKS: usize = 30;
const NOW: i64 = 1_796_000_000_000_000;

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let on = stand::name(&database);
        let db = stand::open(&database).await;
        million::fill(&database).await;
        fill(&database).await;
        add(
            report,
            on,
            "active tasks, 100,000 of them waiting: every 5 s",
            look(&db, |tx| async move { task::active(tx).await.map(drop) }.boxed()).await,
        );
        let now = protocol_bridge::domain::time::Timestamp::from_micros(NOW);
        add(
            report,
            on,
            "outbox, 100,000 messages due: every 5 s",
            look(&db, move |tx| async move { outbox::unpublished(tx, now).await.map(drop) }.boxed()).await,
        );
        add(
            report,
            on,
            "v1 calls of the day, of half a million counts: every 5 s",
            look(&db, |tx| async move { legacy_call::since(tx, "2026-11-30", 50_000).await.map(drop) }.boxed()).await,
        );
        add(
            report,
            on,
            "finished tasks by status, a million: adaptive",
            look(&db, |tx| async move { task::finished(tx).await.map(drop) }.boxed()).await,
        );
        add(
            report,
            on,
            "open dead letters by reason, half a million: adaptive",
            look(&db, |tx| async move { dead_letter::open_by_reason(tx).await.map(drop) }.boxed()).await,
        );
        let (_engine, ticks) = stand::ticks(&database, &db);
        let started = Instant::now();
        ticks.count().await.expect("readable");
        report.add("all of the engine's gauges, once", on, format!("{} ms", started.elapsed().as_millis()), "");
        db.close().await;
    }
}

fn add(report: &mut Report, on: &str, what: &str, mut took: Vec<Duration>) {
    report.add(what, on, spread(&mut took), "");
}

async fn look<F>(db: &Db, read: F) -> Vec<Duration>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> futures::future::BoxFuture<'t, store::Result<()>> + Copy + Send + Sync + 'static,
{
    let mut took = Vec::new();
    for _ in 0..LOOKS {
        let started = Instant::now();
        db.read("gauges", move |tx| read(tx)).await.expect("readable");
        took.push(started.elapsed());
    }
    took
}

/// 100,000 waiting tasks with their messages, half a million dead letters that nobody closed, and as many counts of v1 calls over 400 days.
async fn fill(database: &TestDatabase) {
    let (id, series, analyze) = match database.dialect {
        store::Dialect::Sqlite => {
            ("randomblob(16)", "WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < LIMIT) ", "ANALYZE")
        }
        store::Dialect::Postgres => {
            ("gen_random_uuid()", "WITH series AS (SELECT n FROM generate_series(1, LIMIT) AS n) ", "VACUUM ANALYZE")
        }
    };
    let series = |limit: &str| series.replace("LIMIT", limit);
    let day = match database.dialect {
        store::Dialect::Sqlite => "date('2026-11-30', '-' || (n % 400) || ' days')",
        store::Dialect::Postgres => "to_char(DATE '2026-11-30' - (n % 400)::int, 'YYYY-MM-DD')",
    };
    let at = format!("{NOW} - n * 1000");
    for sql in [
        format!(
            "{} INSERT INTO task (id, kind, agenda_id, payload, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, steps_done, \
             steps_known, caller, revision, created_us) SELECT {id}, 'protocol', 'waiting-' || n, '{{}}', 'PENDING', 0, 0, 5, {at}, {at}, 0, 0, 'bench', 1, {at} FROM series",
            series("100000")
        ),
        format!(
            "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, created_us) \
             SELECT {id}, id, 'ProcessTask', payload, created_us, 0, created_us FROM task WHERE status = 'PENDING'"
        ),
        format!(
            "{} INSERT INTO dead_letter (id, task_id, agenda_id, reason, message, attempts, failed_us) \
             SELECT {id}, {id}, 'agenda', CASE WHEN n % 10 = 0 THEN 'internal' ELSE 'agenda-not-found' END, 'no such agenda', 1, {at} FROM series",
            series("500000")
        ),
        format!(
            "{} INSERT INTO legacy_call (caller, day, outcome, calls) \
             SELECT 'caller-' || (n / 400), {day}, 'received', n FROM series",
            series("500000")
        ),
        analyze.to_owned(),
    ] {
        database.execute(&sql).await;
    }
}
