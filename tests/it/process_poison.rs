//! Case Q-05: a task whose process dies while it runs, again and again. The process is killed from outside, which is all that is seen of a task that aborts it.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer, stalling},
    eventually, on_both_databases,
};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

async fn start(database: &TestDatabase, source: &str) -> Process {
    let environment = [
        ("PROTOCOL_BRIDGE__AGENDA__SOURCE", source),
        ("PROTOCOL_BRIDGE__ENGINE__LEASE", "1s"),
        ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "300ms"),
        ("PROTOCOL_BRIDGE__ENGINE__MAX_ATTEMPTS", "3"),
    ];
    Process::serve(database, &environment).await
}

fn link(task: &Value) -> String {
    task["links"]["status"].as_str().expect("a link").to_owned()
}

on_both_databases! {
    async fn it_ends_as_a_dead_letter_while_others_go_on_and_may_be_cancelled_in_between(database: TestDatabase) {
        // Work on these agendas lasts until the process is gone.
        let agendas = AgendaServer::start(|_, _| answer(200, stalling("{"))).await;
        let source = agendas.url("/{agendaId}");
        let mut process = start(&database, &source).await;
        let (_, deadly) = process.post("/task", &json!({ "agendaId": "deadly" })).await;
        let (_, cancelled) = process.post("/task", &json!({ "agendaId": "cancelled" })).await;
        for crash in 1..=3 {
            eventually(LIMIT, "it runs", async || {
                let task = process.json(&link(&deadly)).await;
                assert_ne!(task["status"], "FAILED", "not before the third crash: {task}");
                (&task["status"], &task["attempt"]) == (&json!("IN_PROGRESS"), &json!(crash))
            })
            .await;
            let (_, other) = process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
            eventually(LIMIT, "others go on", async || process.json(&link(&other)).await["status"] == "COMPLETED").await;
            process.kill();
            process = start(&database, &source).await;
            if crash == 1 {
                let url = format!("{}{}", process.url, cancelled["links"]["cancel"].as_str().expect("a link"));
                assert_eq!(process.client.delete(url).send().await.expect("an answer").status(), 202);
            }
        }
        eventually(LIMIT, "it is given up", async || process.json(&link(&deadly)).await["status"] == "FAILED").await;
        let letters = process.json("/api/dead-letters").await;
        assert_eq!(letters["items"].as_array().map(Vec::len), Some(1), "{letters}");
        let letter = &letters["items"][0];
        assert_eq!((&letter["taskId"], &letter["reason"], &letter["attempts"]), (&deadly["taskId"], &json!("worker-lost"), &json!(3)));
        assert!(letter["message"].as_str().expect("a text").contains("worker"), "{letter}");
        let shown = process.json(&format!("/api/tasks/{}", deadly["taskId"].as_str().expect("an id"))).await;
        let outcomes: Vec<&Value> = shown["attempts"].as_array().expect("attempts").iter().map(|attempt| &attempt["outcome"]).collect();
        assert_eq!(outcomes, ["worker-lost"; 3]);
        assert_eq!(process.json(&link(&cancelled)).await["status"], "CANCELLED", "and it stays so");
    }
}
