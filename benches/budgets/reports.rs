//! A thousand questions, each with a signed report of 200 KB that a server on this machine holds: collected, checked, stored, and attached to the PDF.

use crate::{
    report::Report,
    stand::{self, Stand},
    support::{
        Process,
        agenda_server::{AgendaServer, Seen, answer},
        agendas::{good, spoil},
    },
};
use axum::{body::Body, response::Response};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const QUESTIONS: usize = 1000;
const BYTES: usize = 200_000;

pub async fn run(stand: &Stand, report: &mut Report) {
    for (formats, what, budget) in [
        ("[\"json\"]", "1,000 questions with 1,000 reports of 200 KB: collected, checked, stored", "≤ 20 s, service ≤ 200 MiB"),
        ("[\"pdf\", \"json\"]", "the same, and attached to the PDF", "≤ 20 s, service ≤ 200 MiB"),
    ] {
        for database in stand.databases().await {
            let asked = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&asked);
            let agenda = agenda().to_string();
            let server = AgendaServer::start(move |seen, _| {
                counted.fetch_add(1, Ordering::Relaxed);
                serve(&agenda, seen)
            })
            .await;
            let source = server.url("/{agendaId}");
            let environment =
                [("PROTOCOL_BRIDGE__AGENDA__SOURCE", source.as_str()), ("PROTOCOL_BRIDGE__GENERATOR__FORMATS", formats), stand::QUIET];
            let process = Process::serve(&database, &environment).await;
            let on = stand::name(&database);
            for (again, budget) in [("", budget), (", asked again with nothing changed", "no report fetched, no document made")] {
                let before = asked.load(Ordering::Relaxed);
                let started = Instant::now();
                let (status, answer) = process.post("/task", &json!({ "agendaId": "thousand" })).await;
                assert_eq!(status, 202, "{answer}");
                let alive = while_it_runs(&process, &database).await;
                let requests = asked.load(Ordering::Relaxed) - before;
                let took = started.elapsed().as_secs_f64();
                let measured = format!(
                    "{took:.1} s, {requests} requests, at most {:.0} MiB; /livez p99 {:.0} ms",
                    peak(process.id()),
                    alive.as_secs_f64() * 1000.0
                );
                report.add(&format!("{what}{again}"), on, measured, budget);
            }
            assert_eq!(database.number("SELECT COUNT(*) FROM protocol").await, 1, "the second call got the protocol of the first");
        }
    }
}

/// Asks whether the service is alive until its tasks are done; the p99 of what that took.
async fn while_it_runs(process: &Process, database: &crate::support::TestDatabase) -> Duration {
    let mut took = Vec::new();
    loop {
        let started = Instant::now();
        let answer = process.client.get(format!("{}/livez", process.url)).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        took.push(started.elapsed());
        let open = database.number("SELECT COUNT(*) FROM task WHERE status IN ('PENDING', 'IN_PROGRESS')").await;
        if open == 0 {
            return crate::report::percentile(&mut took, 0.99);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn agenda() -> Value {
    let questions: Vec<Value> = (1..=QUESTIONS)
        .map(|n| {
            json!({
                "id": format!("q{n}"), "order": n, "title": format!("Вопрос {n} об использовании земель общего пользования"), "status": "REPORT_SIGNED",
                "report": { "href": format!("reports/{n}.pdf"), "mediaType": "application/pdf", "bytes": BYTES },
                "decision": [{ "text": format!("Принять доклад {n} к сведению и опубликовать его.") }],
                "vote": { "ballot": "open", "for": 4, "against": 1 }
            })
        })
        .collect();
    spoil(spoil(good(), "/agendaId", json!("thousand")), "/questions", json!(questions))
}

fn serve(agenda: &str, seen: &Seen) -> Response {
    let Some((_, name)) = seen.path.split_once("/reports/") else { return answer(200, agenda.to_owned()) };
    let number: usize = name.trim_end_matches(".pdf").parse().expect("the name of a report");
    // Each is another one, and none compresses to nothing.
    let mut state = number as u64 + 1;
    let content: Vec<u8> = (0..BYTES)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    Response::builder().header("content-type", "application/pdf").body(Body::from(content)).expect("a response")
}

/// The most memory that the process ever held, in MiB.
fn peak(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line for the peak");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes / 1024.0
}
