//! Case Q-02: every slot typesets a large document at once, with a short lease. Leases are renewed all the same, and the service answers.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer},
    agendas, eventually, on_both_databases,
};
use serde_json::json;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_mins(2);
const TASKS: usize = 4;
/// Enough that typesetting them on all cores takes several leases.
const QUESTIONS: u32 = 120;

fn large(id: &str) -> String {
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
    agenda.to_string()
}

on_both_databases! {
    async fn leases_are_renewed_while_all_slots_typeset(database: TestDatabase) {
        let agendas = AgendaServer::start(|seen, _| answer(200, large(seen.path.trim_start_matches('/')))).await;
        let environment = [
            ("PROTOCOL_BRIDGE__AGENDA__SOURCE", &*agendas.url("/{agendaId}")),
            ("PROTOCOL_BRIDGE__ENGINE__LEASE", "1500ms"),
            ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "400ms"),
            ("PROTOCOL_BRIDGE__ENGINE__MAX_RUNNING", "4"),
        ];
        let process = Process::serve(&database, &environment).await;
        let mut tasks = Vec::new();
        for number in 0..TASKS {
            let (_, task) = process.post("/task", &json!({ "agendaId": format!("large-{number}") })).await;
            tasks.push(task["links"]["status"].as_str().expect("a link").to_owned());
        }
        let slowest = AtomicU64::new(0);
        eventually(LIMIT, "all are done", async || {
            let asked = Instant::now();
            let alive = process.client.get(format!("{}/livez", process.url)).send().await.expect("an answer");
            assert_eq!(alive.status(), 200);
            slowest.fetch_max(u64::try_from(asked.elapsed().as_millis()).expect("not for ever"), Ordering::Relaxed);
            database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await == 4
        })
        .await;
        let slowest = slowest.into_inner();
        assert!(slowest < 1000, "/livez took {slowest} ms");
        for task in tasks {
            let task = process.json(&task).await;
            assert_eq!((&task["status"], &task["attempt"]), (&json!("COMPLETED"), &json!(1)), "{task}");
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM attempt").await, 4, "no task was given to a second worker");
        let metrics = process.client.get(format!("{}/metrics", process.url)).send().await.expect("an answer").text().await.expect("a text");
        assert!(metrics.contains("protocol_bridge_leases_lost_total 0\n") && metrics.contains("protocol_bridge_tasks_rescued_total 0\n"));
    }
}
