//! No-op tasks: 50,000 submitted, then run, with durable commits; on PostgreSQL other task queues beside it.

use crate::{
    report::{Report, per_second},
    stand::{self, Noop, Stand},
    support::eventually,
};
use protocol_bridge::store::Dialect;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const TASKS: usize = 50_000;

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let db = stand::open(&database).await;
        let started = Instant::now();
        stand::submit(&stand::engine_at_rest(&database, &db), TASKS).await;
        let on = stand::name(&database);
        report.add("tasks submitted, 64 callers at once", on, format!("{:.0}/s", per_second(TASKS, started.elapsed())), "");

        let entered = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&entered);
        let started = Instant::now();
        let executor = Noop::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let (_engine, shutdown) = stand::engine(&database, &db, executor);
        eventually(Duration::from_mins(10), "all ran", || async { entered.load(Ordering::Relaxed) >= TASKS }).await;
        stand::drained(&database).await;
        let took = started.elapsed();
        let completed = database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED' AND claim_no = 1").await;
        assert_eq!(usize::try_from(completed), Ok(TASKS), "each ran once");
        report.add("no-op tasks run", on, format!("{:.0}/s", per_second(TASKS, took)), "≥ 2,000/s");
        shutdown.force();
        shutdown.finished().await;
        db.close().await;
        if database.dialect == Dialect::Postgres {
            peers(stand, report).await;
        }
    }
}

/// The other queues, if they are installed.
async fn peers(stand: &Stand, report: &mut Report) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    if !folder.join("node_modules").exists() {
        return report.add("other queues", "PostgreSQL", "not installed: npm ci in benches/peers", "");
    }
    let url = format!("{}/postgres", stand.cluster.url());
    let command =
        tokio::process::Command::new("node").arg("measure.mjs").arg(url).arg(TASKS.to_string()).current_dir(folder).output().await;
    let output = command.expect("node can be run");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let measured: serde_json::Value = serde_json::from_str(line).expect("one object a line");
        report.add(measured["name"].as_str().expect("a name"), "PostgreSQL", format!("{}/s", measured["perSecond"]), "");
    }
    if !output.status.success() {
        report.add("other queues", "PostgreSQL", String::from_utf8_lossy(&output.stderr), "");
    }
}
