//! Fifty agendas on one host that takes half a minute for each answer.

use crate::{
    report::Report,
    stand::{self, Stand},
    support::Process,
};
use axum::{Router, extract::Path, http::StatusCode};
use serde_json::json;
use std::time::{Duration, Instant};

const AGENDAS: usize = 50;
const ANSWER: Duration = Duration::from_secs(30);

pub async fn run(stand: &Stand, report: &mut Report) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let source = format!("http://{}/{{agendaId}}", listener.local_addr().expect("an address"));
    let router = Router::new().route("/{id}", axum::routing::get(slowly));
    tokio::spawn(async move { axum::serve(listener, router).await.expect("the server runs") });
    for database in stand.databases().await {
        let environment =
            [("PROTOCOL_BRIDGE__AGENDA__SOURCE", source.as_str()), ("PROTOCOL_BRIDGE__AGENDA__MAX_PER_HOST", "64"), stand::QUIET];
        let process = Process::serve(&database, &environment).await;
        let started = Instant::now();
        for agenda in 0..AGENDAS {
            let (status, answer) = process.post("/task", &json!({ "agendaId": format!("slow-{agenda}") })).await;
            assert_eq!(status, 202, "{answer}");
        }
        stand::drained(&database).await;
        let took = format!("all done in {:.1} s", started.elapsed().as_secs_f64());
        report.add("50 agendas on a host that takes 30 s an answer, max_per_host 64", stand::name(&database), took, "≤ 45 s");
        let completed = database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await;
        assert_eq!(usize::try_from(completed), Ok(AGENDAS), "each got its protocol");
    }
}

async fn slowly(Path(id): Path<String>) -> (StatusCode, String) {
    tokio::time::sleep(ANSWER).await;
    let mut agenda = crate::support::agendas::good();
    agenda["agendaId"] = id.into();
    (StatusCode::OK, agenda.to_string())
}
