//! PostgreSQL is away for longer than `/readyz` forgives, while work is running; and a schema that does not fit.

use crate::support::{Process, Service, TestDatabase, eventually, on_both_databases, postgres::Cluster};
use futures::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};

const TASKS: usize = 100;
const LIMIT: Duration = Duration::from_mins(1);

async fn ready(process: &Process) -> u16 {
    process.client.get(format!("{}/readyz", process.url)).send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_with_work_in_flight_loses_nothing_and_is_told_with_few_words() {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster of our own");
    let database = TestDatabase::postgres_on(&cluster.url()).await;
    let process = Process::serve(&database, &[]).await;
    let submit = |number: usize| {
        let body = json!({ "kind": "demo", "payload": { "sleepMs": 3000 }, "idempotencyKey": number.to_string() });
        let process = &process;
        async move { assert_eq!(process.post("/api/tasks", &body).await.0, 202) }
    };
    join_all((0..TASKS).map(submit)).await;
    eventually(LIMIT, "some run", async || database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'").await > 0).await;

    // Its patience counts from the last answer.
    assert_eq!(ready(&process).await, 200);
    let lines_before = process.log().lines().count();
    let start = Instant::now();
    cluster.stop_server();
    let (status, problem) = process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
    assert_eq!((status, &problem["type"]), (503, &"/problems/unavailable".into()), "{problem}");
    assert!(start.elapsed() < Duration::from_secs(8), "the answer took {:?}", start.elapsed());
    eventually(LIMIT, "it is not ready", async || ready(&process).await == 503).await;
    assert!(start.elapsed() >= Duration::from_secs(9), "a short absence is forgiven, this one took {:?}", start.elapsed());
    cluster.start_server();
    let away = start.elapsed().as_secs();
    eventually(LIMIT, "it is ready again", async || ready(&process).await == 200).await;
    let said = process.log();
    // Requests have lines of their own.
    let is_complaint = |line: &&str| {
        ["WARN", "ERROR"].iter().any(|level| line.contains(&format!(r#""level":"{level}""#))) && !line.contains(r#""span":"request""#)
    };
    let lines: Vec<&str> = said.lines().skip(lines_before).filter(is_complaint).collect();
    // It is said after 0, 1, 3, 7, 15 and 31 s and then twice a minute, by all loops together; the hints, the ledger and the pool have a line each.
    assert!(lines.len() <= 12, "{} lines in {away} s:\n{}", lines.len(), lines.join("\n"));

    let unfinished = "SELECT COUNT(*) FROM task WHERE finished_us IS NULL";
    eventually(LIMIT, "every task ends", async || database.number(unfinished).await == 0).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await, i64::try_from(TASKS).unwrap());
    assert_eq!(database.number("SELECT COUNT(*) FROM dead_letter").await, 0);
    // The server was away for less than a lease: nobody took a task from its holder, and nothing was done twice.
    assert!(!process.log().contains("the lease was lost"), "{}", process.log());
    assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE claim_no > 1").await, 0);
    assert_eq!(process.events("hints from other processes arrive again").len(), 1);
}

on_both_databases! {
    async fn a_schema_that_lacks_something_is_not_ready(database: TestDatabase) {
        let service = Service::start(database).await;
        service.database.execute("DELETE FROM _sqlx_migrations").await;
        let answer = service.get("/readyz?verbose").send().await.unwrap();
        assert_eq!(answer.status(), 503);
        assert!(answer.text().await.unwrap().contains("[+]database ok\n[-]schema failed"));
        service.database.execute("DROP TABLE _sqlx_migrations").await;
        let answer = service.get("/readyz?verbose").send().await.unwrap();
        assert!(answer.text().await.unwrap().contains("[-]schema failed"));
    }
}
