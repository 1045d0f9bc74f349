//! Times say their offset, whatever zone the server is in; and what was accepted is there for everyone at once.

use crate::support::{Process, TestDatabase, eventually, on_both_databases};
use protocol_bridge::{base::clock::Clock, domain::time::Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// One instant in every spelling: with offsets, fractions of any length, lower-case letters, a space.
fn spellings(instant: Timestamp) -> Vec<String> {
    let second = instant.as_micros() / 1_000_000 * 1_000_000;
    // What clocks show there is what clocks show in Greenwich so many hours later.
    let at = |hours: i64| Timestamp::from_micros(second + hours * 3_600_000_000).to_jiff().strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let utc = at(0);
    vec![
        format!("{utc}Z"),
        format!("{utc}+00:00"),
        format!("{}+03:00", at(3)),
        format!("{}-05:00", at(-5)),
        format!("{utc}.000Z"),
        format!("{utc}.000000Z"),
        format!("{utc}.000000000Z"),
        format!("{utc}z").replace('T', "t"),
        format!("{}+10:00", at(10)).replace('T', " "),
    ]
}

async fn submit(process: &Process, run_at: &Value) -> (u16, Value) {
    process.post("/api/tasks", &json!({ "kind": "demo", "payload": {}, "runAt": run_at })).await
}

on_both_databases! {
    async fn a_run_at_means_one_instant_however_it_is_written_and_wherever_the_server_stands(database: TestDatabase) {
        for zone in ["Asia/Vladivostok", "America/St_Johns"] {
            let process = Process::serve(&database, &[("TZ", zone)]).await;
            let instant = Clock::system().now() + Duration::from_secs(4);
            let mut ids = Vec::new();
            for spelling in spellings(instant) {
                let (status, task) = submit(&process, &json!(spelling)).await;
                assert_eq!(status, 202, "{spelling}: {task}");
                ids.push(task["taskId"].as_str().expect("an id").to_owned());
            }
            for id in &ids {
                eventually(LIMIT, "it completes", async || process.json(&format!("/api/tasks/{id}")).await["status"] == "COMPLETED").await;
            }
            let rows = database.fetch("SELECT MIN(run_at_us), MAX(run_at_us), MIN(started_us - run_at_us), MAX(started_us - run_at_us) FROM task WHERE finished_us > 0").await;
            let number = |index: usize| rows[0][index].as_i64().expect("a number");
            assert_eq!(number(0), number(1), "one instant under {zone}");
            assert!(number(2) >= 0 && number(3) < 20_000_000, "started {} to {} µs after it was due, under {zone}", number(2), number(3));
            database.execute("DELETE FROM outbox; DELETE FROM inbox; DELETE FROM task").await;
        }
    }

    async fn a_time_without_an_offset_is_refused_and_never_taken_as_the_servers(database: TestDatabase) {
        let process = Process::serve(&database, &[("TZ", "Asia/Novosibirsk")]).await;
        for wrong in [
            json!("2026-10-25T02:30:00"), json!("2026-10-25"), json!(1_793_000_000), json!("1793000000"), json!("2026-10-25T02:30:00+25:00"),
            json!("2026-10-25T02:30:00+07:00[Europe/Moscow]"), json!("2026-10-25T02:30:00[Europe/Moscow]"),
        ] {
            let (status, problem) = submit(&process, &wrong).await;
            assert_eq!(status, 400, "{wrong}: {problem}");
            assert!(problem.to_string().contains("runAt"), "{problem}");
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, 0);
    }

    async fn what_was_accepted_is_found_on_every_node_at_once(database: TestDatabase) {
        let one = Process::serve(&database, &[]).await;
        // SQLite has one serving process; its readers are other connections all the same.
        let another = if database.url.starts_with("sqlite:") { None } else { Some(Process::serve(&database, &[]).await) };
        let other = another.as_ref().unwrap_or(&one);
        for _ in 0..10 {
            let hundred = (0..100).map(|_| async {
                let (status, task) = one.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
                assert_eq!(status, 202, "{task}");
                let path = task["links"]["status"].as_str().expect("where to look").to_owned();
                let answer = other.client.get(format!("{}{path}", other.url)).send().await.expect("an answer");
                assert_eq!(answer.status(), 200, "{path}");
            });
            futures::future::join_all(hundred).await;
        }
    }
}
