//! Three replicas are restarted one after the other while a hundred v1 calls are held.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, gated},
    agendas, eventually,
    nats::Nats,
};
use futures::future::join_all;
use reqwest::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::{sync::watch, task::JoinHandle};

const LIMIT: Duration = Duration::from_mins(2);
const CALLS: usize = 100;
/// So many calls join one task each.
const AGENDAS: usize = 20;

struct Replicas {
    database: TestDatabase,
    nats: Nats,
    _agenda_service: AgendaServer,
    source: String,
    waiter_grace: &'static str,
    gate: watch::Sender<bool>,
    running: Vec<Process>,
}

impl Replicas {
    async fn start(waiter_grace: &'static str) -> Self {
        let gate = watch::Sender::new(false);
        let opened = gate.subscribe();
        let agenda_service = AgendaServer::start(move |seen, _| {
            let mut agenda = agendas::good();
            agenda["agendaId"] = seen.path.trim_start_matches('/').into();
            gated(opened.clone(), agenda.to_string())
        })
        .await;
        let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
        let source = agenda_service.url("/{agendaId}");
        let mut replicas = Self { database, nats, _agenda_service: agenda_service, source, waiter_grace, gate, running: Vec::new() };
        for _ in 0..3 {
            let replica = replicas.replica().await;
            replicas.running.push(replica);
        }
        replicas
    }

    async fn replica(&self) -> Process {
        let url = self.nats.url();
        let environment = [
            ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", url.as_str()),
            ("PROTOCOL_BRIDGE__AGENDA__SOURCE", self.source.as_str()),
            ("PROTOCOL_BRIDGE__AGENDA__MAX_PER_HOST", "64"),
            ("PROTOCOL_BRIDGE__GENERATOR__FORMATS", r#"["json"]"#),
            ("PROTOCOL_BRIDGE__LEGACY__POLL_INTERVAL", "500ms"),
            ("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "200ms"),
            ("PROTOCOL_BRIDGE__SHUTDOWN__GRACE", "300ms"),
            ("PROTOCOL_BRIDGE__SHUTDOWN__WAITER_GRACE", self.waiter_grace),
        ];
        Process::serve(&self.database, &environment).await
    }

    /// A hundred calls, a third on each replica.
    async fn hold(&self) -> Vec<JoinHandle<reqwest::Result<Response>>> {
        let calls = (0..CALLS).map(|call| tokio::spawn(merge(&self.running[call % 3], call % AGENDAS))).collect();
        eventually(LIMIT, "the calls are held", async || held(&self.running).await >= CALLS).await;
        calls
    }

    /// Each gets its signal and a successor, one after the other; those that end by and by are given back.
    async fn roll(&mut self) -> Vec<Process> {
        let mut leaving = Vec::new();
        for _ in 0..3 {
            let old = self.running.remove(0);
            old.terminate();
            leaving.push(old);
            let successor = self.replica().await;
            self.running.push(successor);
        }
        leaving
    }
}

fn merge(process: &Process, agenda: usize) -> impl Future<Output = reqwest::Result<Response>> + use<> {
    process.client.post(format!("{}/api/v1/protocol/merge/byAgenda/council-{agenda}", process.url)).send()
}

/// How many calls are held by all of them together.
async fn held(replicas: &[Process]) -> usize {
    let mut held = 0;
    for process in replicas {
        let text = process.client.get(format!("{}/metrics", process.url)).send().await.expect("an answer").text().await.expect("a text");
        let value = text.lines().find_map(|line| line.strip_prefix("protocol_bridge_legacy_waiters ")).expect("the gauge is there");
        held += value.parse::<usize>().expect("a number");
    }
    held
}

async fn protocol_of(answer: Response) -> Value {
    let (status, text) = (answer.status(), answer.text().await.expect("a body"));
    assert_eq!(status, 200, "{text}");
    let protocol: Value = serde_json::from_str(&text).expect("a protocol");
    assert!(protocol["protocolId"].is_string(), "{protocol}");
    protocol
}

#[tokio::test(flavor = "multi_thread")]
async fn with_waiter_grace_every_held_call_gets_its_protocol() {
    let mut replicas = Replicas::start("2m").await;
    let calls = replicas.hold().await;
    let leaving = replicas.roll().await;
    replicas.gate.send_replace(true);
    for answer in join_all(calls).await {
        protocol_of(answer.expect("no panic").expect("an answer, not a broken connection")).await;
    }
    for mut process in leaving {
        let status = process.ended(LIMIT).await;
        assert_eq!(status.code(), Some(0), "{}", process.log());
    }
    assert_eq!(replicas.database.number("SELECT COUNT(*) FROM protocol").await, i64::try_from(AGENDAS).expect("few"));
    assert_eq!(replicas.database.number("SELECT COUNT(*) FROM event").await, i64::try_from(AGENDAS).expect("few"));
    assert_eq!(replicas.database.number("SELECT COUNT(*) FROM dead_letter").await, 0);
    assert_eq!(replicas.database.number("SELECT MAX(attempt_no) FROM task").await, 1, "a drain costs no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_it_each_is_told_its_task_and_the_repeated_call_gets_the_protocol() {
    let mut replicas = Replicas::start("300ms").await;
    let calls = replicas.hold().await;
    let leaving = replicas.roll().await;
    for mut process in leaving {
        let status = process.ended(LIMIT).await;
        assert_eq!(status.code(), Some(0), "{}", process.log());
    }
    let mut told = Vec::new();
    for (call, answer) in join_all(calls).await.into_iter().enumerate() {
        let answer = answer.expect("no panic").expect("an answer, not a broken connection");
        assert_eq!(
            (answer.status().as_u16(), answer.headers().get("retry-after").map(reqwest::header::HeaderValue::as_bytes)),
            (503, Some(&b"1"[..]))
        );
        let problem: Value = answer.json().await.expect("a problem");
        told.push((call % AGENDAS, problem["taskId"].as_str().expect("its task").to_owned()));
    }
    assert_eq!(told.len(), CALLS);
    let again: Vec<_> =
        told.iter().enumerate().map(|(number, (agenda, _))| tokio::spawn(merge(&replicas.running[number % 3], *agenda))).collect();
    eventually(LIMIT, "they are held again", async || held(&replicas.running).await >= CALLS).await;
    replicas.gate.send_replace(true);
    for (answer, (_, task)) in join_all(again).await.into_iter().zip(&told) {
        let protocol = protocol_of(answer.expect("no panic").expect("an answer")).await;
        assert_eq!(protocol["taskId"], task.as_str(), "the task it was told");
    }
}
