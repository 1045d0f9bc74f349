//! From a task's end to the answer of the v1 call that waits for it: in the process that ran it, and in another one.

use crate::{
    report::{Report, spread},
    stand::{self, Stand},
    support::{
        Process, TestDatabase,
        agenda_server::{AgendaServer, answer},
    },
};
use protocol_bridge::{domain::time::Timestamp, store::Dialect};
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CALLS: usize = 100;

pub async fn run(stand: &Stand, report: &mut Report) {
    let agendas = slow_agendas(Duration::from_millis(100)).await;
    for database in stand.databases().await {
        let process = serve(&database, &agendas.url("/{agendaId}")).await;
        let mut took = Vec::new();
        for call in 0..CALLS {
            took.push(call_v1(&process, &process, &format!("same-{call}")).await);
        }
        report.add("failure → v1 answer, same process", stand::name(&database), spread(&mut took), "p99 ≤ 10 ms");
        if database.dialect == Dialect::Postgres {
            let other = serve(&database, &agendas.url("/{agendaId}")).await;
            let mut took = Vec::new();
            for call in 0..CALLS {
                let agenda = format!("other-{call}");
                process.post("/task", &json!({ "agendaId": agenda })).await;
                took.push(call_v1(&other, &process, &agenda).await);
            }
            report.add("failure → v1 answer, other replica", stand::name(&database), spread(&mut took), "p99 ≤ 50 ms");
        }
    }
}

/// A service that knows no agenda and takes its time to say so.
async fn slow_agendas(delay: Duration) -> AgendaServer {
    AgendaServer::start(move |_, _| {
        // Blocking: each connection of this small server is a task of its own on a runtime with threads to spare.
        tokio::task::block_in_place(|| std::thread::sleep(delay));
        answer(404, "{}")
    })
    .await
}

async fn serve(database: &TestDatabase, source: &str) -> Process {
    Process::serve(database, &[("PROTOCOL_BRIDGE__AGENDA__SOURCE", source), stand::QUIET]).await
}

/// Calls v1 at `process` and answers how long after the task's end, as `home` tells it, the answer was there.
async fn call_v1(process: &Process, home: &Process, agenda: &str) -> Duration {
    let url = format!("{}/api/v1/protocol/merge/byAgenda/{agenda}", process.url);
    let answer = process.client.post(url).send().await.expect("an answer");
    let answered = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let task = answer.headers().get("task-id").and_then(|id| id.to_str().ok()).expect("each v1 answer names its task").to_owned();
    assert_eq!(answer.status(), 404);
    let status = home.json(&format!("/task/{task}/status")).await;
    let finished: Timestamp = status["finishedAt"].as_str().expect("a time").parse().expect("a time");
    (Timestamp::default() + answered).since(finished)
}
