//! A minute without PostgreSQL and NATS, both at once and with work under way, fills no more than a screen of the log.

use crate::support::{Process, TestDatabase, eventually, nats::Nats, postgres::Cluster};
use futures::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_mins(2);
const AWAY: Duration = Duration::from_mins(1);
/// As many as a process runs by default.
const RUNNING: i64 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_without_database_and_nats_is_told_in_sixty_lines() {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster of our own");
    let mut nats = Nats::start().await;
    let database = TestDatabase::postgres_on(&cluster.url()).await;
    let process = Process::serve(&database, &[("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", &nats.url())]).await;
    let body = json!({ "kind": "demo", "payload": { "sleepMs": 600_000 } });
    join_all((0..RUNNING).map(|_| async { assert_eq!(process.post("/api/tasks", &body).await.0, 202) })).await;
    let running = async || database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'").await;
    eventually(LIMIT, "they run", async || running().await == RUNNING).await;

    let before = process.log().lines().count();
    let start = Instant::now();
    cluster.stop_server();
    nats.kill();
    eventually(LIMIT, "a minute has passed", async || start.elapsed() >= AWAY).await;
    let said = process.log();
    let lines: Vec<&str> = said.lines().skip(before).collect();
    assert!(lines.len() <= 60, "{} lines:\n{}", lines.len(), lines.join("\n"));
    for message in ["the database failed us", "NATS cannot be used"] {
        assert!(lines.iter().any(|line| line.contains(message)), "nobody says that {message}:\n{}", lines.join("\n"));
    }

    cluster.start_server();
    nats.start_again().await;
    eventually(LIMIT, "work goes on", async || running().await == RUNNING).await;
    for message in ["hints from other processes arrive again", "NATS is there again"] {
        eventually(LIMIT, message, async || process.events(message).len() == 1).await;
    }
}
