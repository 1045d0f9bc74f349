//! Case O-09: what HTTP accepts goes through, whatever the broker's limit; the rest is refused with the limit's name.

use crate::support::{
    TestDatabase, TestServer,
    agenda_server::{AgendaServer, answer},
    agendas, eventually,
    nats::Nats,
    server,
};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);
const MIB: usize = 1024 * 1024;

async fn completes(server: &TestServer, task: &Value) {
    let status = task["links"]["status"].as_str().expect("a link").to_owned();
    eventually(LIMIT, "it completes", async || {
        let task = server.json(&status).await;
        assert_ne!(task["status"], "FAILED", "{task}");
        task["status"] == "COMPLETED"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_at_the_limits_complete_or_are_refused_by_name() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
    let server = TestServer::start(&database, |config| config.engine.transport = nats.url().into()).await;
    let frame = json!({ "kind": "demo", "payload": { "note": "" } }).to_string().len();
    for bytes in [64 * 1024, 900_000, 1_000_000, MIB - 1, MIB, MIB + 1, 1_100_000, 2_000_000, 2_100_000] {
        let body = json!({ "kind": "demo", "payload": { "note": "x".repeat(bytes - frame) } }).to_string();
        assert_eq!(body.len(), bytes);
        let request = server.post("/api/tasks").header("content-type", "application/json").body(body);
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let answer = server::json(response).await;
        if bytes <= MIB {
            assert_eq!(status, 202, "{bytes}: {answer}");
            completes(&server, &answer).await;
        } else {
            assert_eq!((status, &answer["type"]), (413, &json!("/problems/payload-too-large")), "{bytes}: {answer}");
            assert!(
                answer["detail"].as_str().expect("a detail").contains("1 MiB") || answer["detail"].to_string().contains("1048576"),
                "{answer}"
            );
        }
    }
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agendas_larger_than_any_message_complete() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
    let agenda_service = AgendaServer::start(|seen, _| {
        let id = seen.path.trim_start_matches('/');
        let bytes: usize = id.trim_start_matches("large-").parse().expect("a size");
        let mut agenda = agendas::good();
        agenda["agendaId"] = id.into();
        // Many paragraphs, as large agendas have them.
        let paragraph = "Слово о бюджете и о дорогах. ".repeat(20);
        let count = bytes / (paragraph.len() + 4);
        agenda["questions"][0]["heard"] = (0..count).map(|_| Value::from(paragraph.as_str())).collect();
        answer(200, agenda.to_string())
    })
    .await;
    let source = agenda_service.url("/{agendaId}");
    let server = TestServer::start(&database, |config| {
        config.engine.transport = nats.url().into();
        config.agenda.source = source;
        // The document itself is not what is tried here; typesetting 2 MB of text takes a while.
        config.generator.formats = vec![protocol_bridge::domain::protocol::Format::Json];
    })
    .await;
    for bytes in [900_000, 1_000_000, 1_100_000, 2_000_000, 2_100_000] {
        let (agenda, request) = (format!("large-{bytes}"), server.post("/task"));
        let response = request.json(&json!({ "agendaId": agenda })).send().await.expect("an answer");
        assert_eq!(response.status(), 202);
        completes(&server, &server::json(response).await).await;
        let protocols = server.json(&format!("/protocol?agendaId={agenda}")).await;
        assert_eq!(protocols["items"].as_array().map(Vec::len), Some(1), "{protocols}");
    }
    assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 5);
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
}
