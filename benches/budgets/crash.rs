//! From `kill -9` of the process that runs a task to the moment when it runs again.

use crate::{
    report::Report,
    stand::{self, Stand},
    support::{Process, TestDatabase, eventually},
};
use protocol_bridge::store::Dialect;
use serde_json::json;
use std::time::{Duration, Instant};

const LEASE: (&str, &str) = ("PROTOCOL_BRIDGE__ENGINE__LEASE", "10s");
const HEARTBEAT: (&str, &str) = ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "3s");
const LIMIT: Duration = Duration::from_mins(1);

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let mut process = Process::serve(&database, &[LEASE, HEARTBEAT]).await;
        // On PostgreSQL another node stands by; on SQLite the same data folder is served again.
        let standby = if database.dialect == Dialect::Postgres { Some(Process::serve(&database, &[LEASE, HEARTBEAT]).await) } else { None };
        process.post("/api/tasks", &json!({ "kind": "demo", "payload": { "sleepMs": 120_000 } })).await;
        eventually(LIMIT, "it runs", || claimed(&database, 1)).await;
        process.kill();
        let killed = Instant::now();
        let next = match standby {
            Some(standby) => standby,
            None => Process::serve(&database, &[LEASE, HEARTBEAT]).await,
        };
        eventually(LIMIT, "it runs again", || claimed(&database, 2)).await;
        let took = format!("{:.1} s with a lease of 10 s", killed.elapsed().as_secs_f64());
        report.add("kill -9 → running again", stand::name(&database), took, "≤ lease + 5 s");
        drop(next);
    }
}

async fn claimed(database: &TestDatabase, claim: i64) -> bool {
    database.number(&format!("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS' AND claim_no = {claim}")).await == 1
}
