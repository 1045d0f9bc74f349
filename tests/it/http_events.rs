//! `GET /api/events`: the stream, its replay, and one event by its id.

use crate::support::{Service, TestDatabase, on_both_databases, within};
use futures::StreamExt as _;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// A stream of server-sent events, read as a client does.
struct Stream {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Stream {
    async fn open(request: RequestBuilder) -> Self {
        let response: Response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// Id, type and data of the next block; the first one has an id only.
    async fn next(&mut self) -> (u64, Option<String>, Value) {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let Some(id) = field("id: ") else { continue };
                let data = field("data: ").map_or(Value::Null, |data| serde_json::from_str(&data).expect("JSON"));
                return (id.parse().expect("a position"), field("event: "), data);
            }
            let bytes = within(LIMIT, "more of the stream", self.body.next()).await.expect("it goes on").expect("readable");
            self.text.push_str(std::str::from_utf8(&bytes).expect("whole characters"));
        }
    }
}

on_both_databases! {
    async fn what_is_missed_comes_first_and_then_what_is_new(database: TestDatabase) {
        let service = Service::start(database).await;
        let mut early = Stream::open(service.get("/api/events")).await;
        assert_eq!(early.next().await, (0, None, Value::Null), "a place to go on from, before anything has happened");
        service.protocol_of("first").await;
        service.json(service.post("/task").json(&json!({ "agendaId": "unknown" }))).await;
        let (id, kind, first) = early.next().await;
        assert_eq!((id, kind.as_deref()), (1, Some("ObesrabuoProtocolGenerationCompleted")));
        assert_eq!((&first["subject"], &first["specversion"]), (&json!("first"), &json!("1.0")));
        let (_, kind, failed) = early.next().await;
        assert_eq!(kind.as_deref(), Some("ObesrabuoProtocolGenerationFailed"));
        assert_eq!(failed["data"]["failure"]["code"], "agenda-not-found");
        drop(early);
        let again = service.get("/api/events").header("Last-Event-ID", "1");
        let mut again = Stream::open(again).await;
        assert_eq!(again.next().await.0, 1);
        assert_eq!(again.next().await, (2, Some("ObesrabuoProtocolGenerationFailed".to_owned()), failed.clone()), "the same event, byte for byte");
        let mut one = Stream::open(service.get("/api/events?after=0&agendaId=second&type=ObesrabuoProtocolGenerationCompleted")).await;
        assert_eq!(one.next().await.0, 0);
        let second = service.protocol_of("second").await;
        let (id, _, told) = one.next().await;
        assert_eq!((id, &told["data"]["protocolId"], &told["data"]["documents"]), (3, &second["protocolId"], &second["documents"]));
        // By its id, too.
        let whole = service.get(&format!("/api/events/{}", failed["id"].as_str().unwrap())).send().await.unwrap();
        assert_eq!(whole.headers()["content-type"], "application/cloudevents+json");
        assert_eq!(whole.json::<Value>().await.unwrap(), failed);
        assert_eq!(service.get("/api/events/00000000-0000-7000-8000-000000000000").send().await.unwrap().status(), 404);
        for wrong in ["/api/events?after=-1", "/api/events?type=Completed", "/api/events?agenda=x", "/api/events?agendaId=../x"] {
            assert_eq!(service.get(wrong).send().await.unwrap().status(), 400, "{wrong}");
        }
        assert_eq!(service.get("/api/events").header("Last-Event-ID", "x").send().await.unwrap().status(), 400);
    }
}

/// What one replica makes is told by the other, and a stream ends with its process so that the client goes elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn another_replica_tells_it_too() {
    let service = Service::start(TestDatabase::postgres().await).await;
    let other = service.replica(&[], |_| {}).await;
    let mut stream = Stream::open(other.get("/api/events")).await;
    assert_eq!(stream.next().await.0, 0);
    service.protocol_of("here").await;
    assert_eq!(stream.next().await.2["subject"], "here");
    other.shutdown.begin();
    let end = within(LIMIT, "the stream ends", stream.body.next()).await;
    assert!(end.is_none_or(|rest| rest.is_ok_and(|rest| rest.is_empty())));
}

/// Case O-09: an event of megabytes is told by reference, and the reference leads to all of it.
#[tokio::test(flavor = "multi_thread")]
async fn o_09_a_large_event_is_told_by_reference() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    let data = json!({ "taskId": "00000000-0000-7000-8000-000000000002", "text": "ж".repeat(1_000_000) });
    let event = json!({ "specversion": "1.0", "id": "00000000-0000-7000-8000-000000000001", "source": "/protocol-bridge", "type": "ObesrabuoProtocolGenerationFailed",
        "subject": "large", "time": "2026-11-30T12:00:00Z", "datacontenttype": "application/json", "data": data });
    let mut stream = Stream::open(service.get("/api/events")).await;
    stream.next().await;
    service
        .database
        .execute(&format!(
            "INSERT INTO event (id, type, task_id, agenda_id, body, created_us) VALUES (x'00000000000070008000000000000001', \
             'ObesrabuoProtocolGenerationFailed', x'00000000000070008000000000000002', 'large', '{event}', 1)"
        ))
        .await;
    let (_, _, told) = stream.next().await;
    assert_eq!((&told["id"], &told["data"]), (&event["id"], &Value::Null));
    let whole = service.json(service.get(told["dataref"].as_str().expect("a reference"))).await;
    assert_eq!(whole, (200, event));
}
