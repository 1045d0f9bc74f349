//! `kill -9`, and what the next process makes of it.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer},
    agendas, eventually, on_both_databases,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Enough questions that typesetting them takes seconds, so that a kill hits the middle of it.
const QUESTIONS: u32 = 400;
const LIMIT: Duration = Duration::from_mins(2);

fn large(id: &str) -> Value {
    let mut agenda = agendas::good();
    agenda["agendaId"] = id.into();
    let question = agenda["questions"][0].clone();
    let questions = (1..=QUESTIONS).map(|order| {
        let mut question = question.clone();
        question["id"] = format!("q{order}").into();
        question["order"] = order.into();
        question["title"] = format!("О вопросе под номером {order}").into();
        question["decision"] = json!([{ "text": format!("Принять к исполнению пункт {order}.") }]);
        question
    });
    agenda["questions"] = questions.collect();
    agenda
}

async fn start(database: &TestDatabase, source: &str) -> Process {
    let environment = [
        ("PROTOCOL_BRIDGE__AGENDA__SOURCE", source),
        ("PROTOCOL_BRIDGE__ENGINE__LEASE", "3s"),
        ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "1s"),
    ];
    Process::serve(database, &environment).await
}

on_both_databases! {
    async fn killed_in_merge_it_is_finished_by_the_next_process(database: TestDatabase) {
        let agenda_service = AgendaServer::start(|_, _| answer(200, large("large").to_string())).await;
        let source = agenda_service.url("/{agendaId}");
        let mut process = start(&database, &source).await;
        let (_, submitted) = process.post("/task", &json!({ "agendaId": "large" })).await;
        let status = submitted["links"]["status"].as_str().expect("a link").to_owned();
        eventually(LIMIT, "the task merges", async || process.json(&status).await["phase"] == "MERGE").await;
        process.kill();
        let (state, asked) = (database.fetch("SELECT status, phase FROM task").await, agenda_service.seen().len());
        assert_eq!(state, [[json!("IN_PROGRESS"), json!("MERGE")]], "it was killed in the middle");

        let process = start(&database, &source).await;
        eventually(LIMIT, "the next process finishes it", async || {
            let task = process.json(&status).await;
            assert!(["IN_PROGRESS", "PENDING", "COMPLETED"].contains(&task["status"].as_str().expect("a status")), "{task}");
            task["status"] == "COMPLETED"
        })
        .await;
        let task = process.json(&status).await;
        assert_eq!(task["attempt"], 2, "a crash counts: {task}");
        assert!(agenda_service.seen().len() <= asked + 1, "what was collected is not asked for again");
        let protocols = process.json("/protocol?agendaId=large").await;
        assert_eq!((protocols["items"].as_array().map(Vec::len), &protocols["items"][0]["version"]), (Some(1), &json!(1)));
        assert_eq!(protocols["items"][0]["questions"].as_array().map(Vec::len), Some(QUESTIONS as usize));
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1, "its end is told once");
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0, "no message is left over");
    }

    async fn killed_at_any_moment_no_accepted_task_is_lost(database: TestDatabase) {
        let source = "samples";
        let mut accepted = Vec::new();
        for round in 0..4_u32 {
            let mut process = start(&database, source).await;
            for number in 0..10 {
                let payload = json!({ "kind": "demo", "payload": { "sleepMs": 20 * number }, "idempotencyKey": format!("{round}-{number}") });
                let (_, task) = process.post("/api/tasks", &payload).await;
                accepted.push(task["links"]["status"].as_str().expect("accepted").to_owned());
            }
            // The first of them have ended, the last have not begun or are under way.
            let first = accepted[accepted.len() - 10].clone();
            eventually(LIMIT, "the first ends", async || process.json(&first).await["status"] == "COMPLETED").await;
            process.kill();
        }
        let process = start(&database, source).await;
        for status in &accepted {
            eventually(LIMIT, "every accepted task completes", async || process.json(status).await["status"] == "COMPLETED").await;
        }
        let finished = "SELECT COUNT(*) FROM attempt WHERE outcome = 'completed'";
        assert_eq!(database.number(finished).await, i64::try_from(accepted.len()).expect("few"), "each finished exactly once");
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, i64::try_from(accepted.len()).expect("few"));
    }
}
