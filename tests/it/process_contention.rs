//! Many clients at once, while another program writes into the same database; and many programs that begin at the same moment.

use crate::support::{Process, TestDatabase, eventually, on_both_databases, process};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

const CLIENTS: usize = 50;
const TASKS_EACH: usize = 12;

/// Submits tasks one after the other and cancels some of them; the ids of those accepted.
async fn client(process: &Process, number: usize) -> Vec<String> {
    let mut accepted = Vec::new();
    for task in 0..TASKS_EACH {
        let body = json!({ "kind": "demo", "payload": { "sleepMs": task }, "idempotencyKey": format!("{number}-{task}") });
        let (status, task) = process.post("/api/tasks", &body).await;
        assert_eq!(status, 202, "{task}");
        let id = task["taskId"].as_str().expect("an id").to_owned();
        if number.is_multiple_of(5) {
            let answer = process.client.delete(format!("{}/task/{id}", process.url)).send().await.expect("an answer");
            assert!([200, 202, 409].contains(&answer.status().as_u16()), "{}", answer.status());
        }
        accepted.push(id);
    }
    accepted
}

async fn reader(process: &Process, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let list = process.json("/api/tasks?limit=50").await;
        assert!(list["items"].is_array(), "{list}");
    }
}

async fn foreign_writer(database: &TestDatabase, stop: &AtomicBool) {
    let write = "INSERT INTO setting (name, value) VALUES ('foreign', '0') ON CONFLICT (name) DO UPDATE SET value = setting.value || '0'";
    while !stop.load(Ordering::Relaxed) {
        database.execute(write).await;
    }
}

on_both_databases! {
    async fn many_clients_and_a_foreign_writer_meet_no_error(database: TestDatabase) {
        let process = Process::serve(&database, &[]).await;
        let stop = AtomicBool::new(false);
        let clients = async {
            let accepted: Vec<Vec<String>> = join_all((0..CLIENTS).map(|number| client(&process, number))).await;
            stop.store(true, Ordering::Relaxed);
            accepted.concat()
        };
        let readers = join_all((0..10).map(|_| reader(&process, &stop)));
        let (accepted, _, ()) = tokio::join!(clients, readers, foreign_writer(&database, &stop));

        let unfinished = "SELECT COUNT(*) FROM task WHERE finished_us IS NULL";
        eventually(Duration::from_mins(1), "every task ends", async || database.number(unfinished).await == 0).await;
        let stored = database.fetch("SELECT id FROM task").await;
        let stored: HashSet<&str> = stored.iter().filter_map(|row| row[0].as_str()).collect();
        assert_eq!(stored.len(), CLIENTS * TASKS_EACH);
        assert!(accepted.iter().all(|id| stored.contains(id.as_str())), "every 202 has its task");
        let log = process.log().to_lowercase();
        assert!(!log.contains("locked") && !log.contains("busy"), "{log}");
        assert!(!log.contains(r#""level":"error""#), "{log}");
    }

    async fn eight_programs_that_migrate_at_once_all_succeed(database: TestDatabase) {
        for _ in 0..3 {
            let fresh = database.another().await;
            let migrate = || async {
                let (url, folder) = (fresh.url.clone(), fresh.data_dir.path().to_owned());
                tokio::task::spawn_blocking(move || process::run(&["migrate", "--database-url", &url], &[], &folder)).await.expect("it ran")
            };
            for output in join_all((0..8).map(|_| migrate())).await {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            assert_eq!(fresh.number("SELECT COUNT(*) FROM task").await, 0, "the schema is there");
        }
    }

    async fn the_zone_of_the_machine_changes_nothing(database: TestDatabase) {
        for zone in ["Asia/Novosibirsk", "America/St_Johns"] {
            let fresh = database.another().await;
            let process = Process::serve(&fresh, &[("TZ", zone)]).await;
            let submit = async |run_at: &str| process.post("/api/tasks", &json!({ "payload": {}, "runAt": run_at })).await;
            let (status, problem) = submit("2096-10-25T02:30:00").await;
            assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("/runAt")), "{problem}");
            let (status, task): (u16, Value) = submit("2096-10-25T02:30:00+03:00").await;
            assert_eq!((status, &task["nextAttemptAt"]), (202, &json!("2096-10-24T23:30:00Z")), "{task}");
        }
    }
}
