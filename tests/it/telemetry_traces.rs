//! One trace from the request that submits a task to what the task asks of others and tells them; and what becomes of it when the collector is away.

use crate::support::{
    Process, Service, TestDatabase,
    agenda_server::{AgendaServer, Seen, answer},
    agendas::{spoil, with},
    collector::{Collector, attributes, hex},
    eventually, on_both_databases,
};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_mins(1);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const STATE: &str = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7";

/// The good agenda under any id, with one report file; none under `absent`.
async fn agendas() -> AgendaServer {
    AgendaServer::start(|seen, _| match seen.path.rsplit_once('/') {
        Some((_, "report.pdf")) => answer(200, std::fs::read("docs/sample-protocol.pdf").expect("a PDF")),
        Some((_, "absent")) => answer(404, ""),
        Some((_, id)) => {
            let agenda =
                spoil(with("/agendaId", json!(id)), "/questions/0/report", json!({ "href": "report.pdf", "mediaType": "application/pdf" }));
            answer(200, agenda.to_string())
        }
        None => answer(400, ""),
    })
    .await
}

fn parent_of(span: &Span) -> String {
    hex(&span.parent_span_id)
}

fn only(mut spans: Vec<Span>) -> Span {
    assert_eq!(spans.len(), 1, "{spans:?}");
    spans.remove(0)
}

async fn submit(process: &Process, agenda: &str, headers: &[(&str, &str)]) -> String {
    let mut request = process.client.post(format!("{}/task", process.url)).json(&json!({ "agendaId": agenda }));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    answer["taskId"].as_str().expect("accepted").to_owned()
}

async fn ended(process: &Process, task: &str) -> String {
    let status = async || process.json(&format!("/task/{task}/status")).await["status"].as_str().expect("a status").to_owned();
    eventually(LIMIT, "the task ends", async || ["COMPLETED", "FAILED"].contains(&status().await.as_str())).await;
    status().await
}

on_both_databases! {
    async fn a_task_is_one_trace_from_its_request_to_the_calls_it_makes(database: TestDatabase) {
        let (collector, agendas) = (Collector::start().await, agendas().await);
        let source = agendas.url("/agenda/{agendaId}");
        let environment = [("PROTOCOL_BRIDGE__TELEMETRY__OTLP_ENDPOINT", collector.url.as_str()), ("PROTOCOL_BRIDGE__AGENDA__SOURCE", &source)];
        let mut process = Process::serve(&database, &environment).await;

        let task = submit(&process, "a1", &[("traceparent", PARENT), ("tracestate", STATE), ("x-caller", "tester")]).await;
        assert_eq!(ended(&process, &task).await, "COMPLETED");
        let request = only(collector.named(TRACE, "POST /task").await);
        assert_eq!((parent_of(&request).as_str(), request.kind()), ("00f067aa0ba902b7", SpanKind::Server));
        assert_eq!(request.trace_state, STATE);
        let about = attributes(&request.attributes);
        assert_eq!((&about["taskId"], &about["agendaId"], &about["caller"], &about["http.response.status_code"]),
            (&task.as_str().into(), &"a1".into(), &"tester".into(), &202.into()));

        let attempt = only(collector.named(TRACE, "task protocol").await);
        assert_eq!((parent_of(&attempt), attempt.kind()), (hex(&request.span_id), SpanKind::Consumer));
        let about = attributes(&attempt.attributes);
        assert_eq!((&about["taskId"], &about["agendaId"], &about["caller"], &about["attempt"], &about["claim"], &about["outcome"]),
            (&task.as_str().into(), &"a1".into(), &"tester".into(), &1.into(), &1.into(), &"completed".into()));
        for phase in ["COLLECT", "CHECK", "MERGE", "PUBLISH"] {
            assert_eq!(parent_of(&only(collector.named(TRACE, phase).await)), hex(&attempt.span_id), "{phase}");
        }
        let collect = only(collector.named(TRACE, "COLLECT").await);
        let calls = collector.named(TRACE, "GET").await;
        assert!(calls.iter().all(|call| parent_of(call) == hex(&collect.span_id) && call.kind() == SpanKind::Client), "{calls:?}");
        let seen = agendas.seen();
        assert_eq!(seen.len(), calls.len());
        for Seen { path, traceparent, tracestate, .. } in &seen {
            let call = calls.iter().find(|call| *traceparent == Some(format!("00-{TRACE}-{}-01", hex(&call.span_id))));
            let call = call.unwrap_or_else(|| panic!("{path} came under {traceparent:?}"));
            assert_eq!(tracestate.as_deref(), Some(STATE));
            assert_eq!(attributes(&call.attributes)["url.full"], Value::from(agendas.url(path)));
        }
        assert!(seen.iter().any(|seen| seen.path.ends_with("report.pdf")), "{seen:?}");
        let event: Value = serde_json::from_str(database.fetch("SELECT body FROM event").await[0][0].as_str().expect("a text")).expect("JSON");
        assert_eq!((&event["traceparent"], &event["tracestate"]), (&format!("00-{TRACE}-{}-01", hex(&request.span_id)).into(), &STATE.into()));

        // A header that is no traceparent begins a trace of its own; what goes wrong is said in it.
        let task = submit(&process, "absent", &[("traceparent", "00-xyz-01")]).await;
        assert_eq!(ended(&process, &task).await, "FAILED");
        let of_task = |span: &Span| attributes(&span.attributes).get("taskId") == Some(&task.as_str().into());
        eventually(LIMIT, "its spans", async || collector.spans().iter().any(|span| span.name == "task protocol" && of_task(span))).await;
        let spans = collector.spans();
        let attempt = spans.iter().find(|span| span.name == "task protocol" && of_task(span)).expect("just seen");
        let trace = hex(&attempt.trace_id);
        assert_ne!(trace, TRACE);
        let status = attempt.status.as_ref().expect("a status");
        assert_eq!((status.code(), status.message.as_str()), (StatusCode::Error, "agenda-not-found"));
        assert_eq!(attributes(&attempt.attributes)["outcome"], "failed");
        assert_eq!(only(collector.named(&trace, "COLLECT").await).status.expect("a status").code(), StatusCode::Error);
        assert_eq!(attributes(&only(collector.named(&trace, "GET").await).attributes)["http.response.status_code"], 404);
        let request = only(collector.named(&trace, "POST /task").await);
        assert_eq!((parent_of(&request).as_str(), request.status.unwrap_or_default().code()), ("", StatusCode::Unset));

        // Lines of the log are found by the trace.
        let outcome = process.events("task FAILED");
        assert_eq!((outcome.len(), &outcome[0]["traceId"], &outcome[0]["failure"]), (1, &trace.as_str().into(), &"agenda-not-found".into()));

        // What is not sent yet when the process ends is sent at its end.
        process.client.get(format!("{}/livez", process.url)).header("traceparent", PARENT).send().await.expect("an answer");
        process.interrupt();
        assert!(process.ended(LIMIT).await.success(), "{}", process.log());
        assert_eq!(collector.named(TRACE, "GET /livez").await.len(), 1);
        assert_eq!(attributes(&collector.resource().expect("who sent it").attributes)["service.name"], "protocol-bridge");
    }
}

on_both_databases! {
    async fn without_a_collector_the_callers_place_is_handed_on_as_it_came(database: TestDatabase) {
        let agendas = agendas().await;
        let source = agendas.url("/agenda/{agendaId}");
        let service = Service::with(database, &[], |config| config.agenda.source.clone_from(&source)).await;
        let submit = |agenda: &'static str, parent: Option<&'static str>| {
            let mut request = service.post("/task").json(&json!({ "agendaId": agenda }));
            if let Some(parent) = parent {
                request = request.header("traceparent", parent).header("tracestate", STATE);
            }
            service.json(request)
        };
        let (status, task) = submit("a1", Some(PARENT)).await;
        assert_eq!(status, 202, "{task}");
        service.finished(task["taskId"].as_str().expect("an id")).await;
        let seen = agendas.seen();
        assert!(seen.len() >= 2 && seen.iter().all(|seen| seen.traceparent.as_deref() == Some(PARENT) && seen.tracestate.as_deref() == Some(STATE)), "{seen:?}");
        let (_, task) = submit("a2", None).await;
        service.finished(task["taskId"].as_str().expect("an id")).await;
        let fresh: Vec<Seen> = agendas.seen().split_off(seen.len());
        let parent = fresh[0].traceparent.clone().expect("a trace of its own");
        assert!(parent.ends_with("-00") && fresh.iter().all(|seen| seen.traceparent.as_ref() == Some(&parent)), "nobody records it: {fresh:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_silent_costs_spans_and_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    // It accepts, as a kernel does, and never answers; the other address is nobody's.
    let silent = format!("http://{}", taken.local_addr().expect("an address"));
    let nobody = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("http://{}", free.local_addr().expect("an address"))
    };
    for endpoint in [nobody, silent] {
        let database = TestDatabase::sqlite().await;
        let mut process = Process::serve(&database, &[("PROTOCOL_BRIDGE__TELEMETRY__OTLP_ENDPOINT", endpoint.as_str())]).await;
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let start = Instant::now();
            assert_eq!(process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await.0, 202);
            slowest = slowest.max(start.elapsed());
        }
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
        eventually(LIMIT, "all end", async || database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await == 50).await;
        let said = "the trace collector does not take spans; they are dropped until it does";
        eventually(LIMIT, "it is said", async || !process.events(said).is_empty()).await;
        let start = Instant::now();
        process.interrupt();
        assert!(process.ended(LIMIT).await.success(), "{}", process.log());
        assert!(start.elapsed() < Duration::from_secs(8), "the end took {:?}", start.elapsed());
        assert_eq!(process.events(said).len(), 1, "{}", process.log());
    }
}
