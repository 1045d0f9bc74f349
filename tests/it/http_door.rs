//! The door: whatever is sent, the answer is the right problem, on both databases alike, and the service goes on.

use crate::support::{Service, TestDatabase, on_both_databases};
use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

async fn post(service: &Service, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    service.json(service.post(path).header("content-type", "application/json").body(body)).await
}

/// The first line and the body of an answer to bytes as they are.
async fn raw(service: &Service, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    crate::support::within(std::time::Duration::from_secs(10), "an answer", stream.read_to_end(&mut answer)).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

on_both_databases! {
    async fn what_cannot_be_stored_is_refused_naming_its_place(database: TestDatabase) {
        let service = Service::start(database).await;
        for (path, body, pointer) in [
            ("/task", r#"{"agendaId":"a\u0000"}"#, "/agendaId"),
            ("/task", r#"{"agendaId":"a","clientReference":"x\u0000y"}"#, "/clientReference"),
            ("/task", r#"{"agendaId":"a","clientReference":"\ud800"}"#, "/clientReference"),
            ("/task", r#"{"agendaId":"a","callbackUrl":"https://e.org/\u0000"}"#, "/callbackUrl"),
            ("/task", r#"{"agendaId":"a","runAt":"2026-11-30T12:00:00Z\u0000"}"#, "/runAt"),
            ("/task", r#"{"agendaId":"a","k\u0000":1}"#, "/k\u{FFFD}"),
            ("/api/tasks", r#"{"payload":{"deep":{"k\u0000":1}}}"#, "/payload/deep/k\u{FFFD}"),
            ("/api/tasks", r#"{"payload":{"list":["ok","\udc00x"]}}"#, "/payload/list/1"),
            ("/api/tasks", r#"{"payload":"{\"note\":\"\\u0000\"}"}"#, "/payload/note"),
            ("/api/tasks", r#"{"payload":{},"idempotencyKey":"\u0000"}"#, "/idempotencyKey"),
        ] {
            let (status, answer) = post(&service, path, body).await;
            assert_eq!((status, &answer["type"]), (400, &"/problems/invalid-request".into()), "{body}: {answer}");
            assert_eq!(answer["errors"][0]["pointer"], pointer, "{body}: {answer}");
        }
        let (status, answer) = service.json(service.get("/api/tasks?caller=%00")).await;
        assert_eq!((status, &answer["errors"][0]["pointer"]), (400, &"/query/caller".into()));
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
        // What a header cannot hold does not get through HTTP; what it can hold is kept.
        let odd = service.post("/api/tasks").header("user-agent", "мой/1".as_bytes()).json(&serde_json::json!({ "payload": {} }));
        assert_eq!(service.json(odd).await.0, 202);
    }

    // Case S-02: never the server's local time.
    async fn a_time_without_an_offset_is_refused(database: TestDatabase) {
        let service = Service::start(database).await;
        for run_at in ["\"2026-10-25T02:30:00\"", "\"2026-10-25\"", "1796040000", "\"2026-10-25T02:30:00+25:00\"", "\"2026-10-25T02:30:00+03:00[Europe/Moscow]\"", "\"tomorrow\"", "\"\"", "true"] {
            for (path, body) in [("/task", format!(r#"{{"agendaId":"a","runAt":{run_at}}}"#)), ("/api/tasks", format!(r#"{{"payload":{{}},"runAt":{run_at}}}"#))] {
                let (status, answer) = post(&service, path, body).await;
                assert_eq!((status, &answer["errors"][0]["pointer"]), (400, &"/runAt".into()), "{run_at}: {answer}");
            }
        }
        for query in ["from=2026-10-25T02:30:00", "to=yesterday"] {
            assert_eq!(service.json(service.get(&format!("/api/tasks?{query}"))).await.0, 400, "{query}");
        }
    }

    async fn rubbish_gets_the_right_problem_and_the_service_goes_on(database: TestDatabase) {
        let service = Service::start(database).await;
        let brackets = "[".repeat(10_000);
        let nested = format!(r#"{{"agendaId":"a","x":{}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        let large = format!(r#"{{"agendaId":"a","clientReference":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
        let long = format!(r#"{{"agendaId":"a","clientReference":"{}"}}"#, "я".repeat(257));
        for (what, body, status, code) in [
            ("nothing", "", 400, "invalid-request"),
            ("no JSON", "agendaId=42", 400, "invalid-request"),
            ("an array", "[]", 400, "invalid-request"),
            ("null", "null", 400, "invalid-request"),
            ("no agenda", "{}", 400, "invalid-request"),
            ("a number for an agenda", r#"{"agendaId":42}"#, 400, "invalid-request"),
            ("an object for an agenda", r#"{"agendaId":{}}"#, 400, "invalid-request"),
            ("a path for an agenda", r#"{"agendaId":"../x"}"#, 400, "invalid-request"),
            ("an unknown field", r#"{"agendaId":"a","agenda":"b"}"#, 400, "invalid-request"),
            ("a field twice", r#"{"agendaId":"a","agendaId":"b"}"#, 400, "invalid-request"),
            ("a callback that is no URL", r#"{"agendaId":"a","callbackUrl":"javascript:alert(1)"}"#, 400, "invalid-request"),
            ("a long reference", &long, 400, "invalid-request"),
            ("10,000 brackets", &brackets, 400, "invalid-request"),
            ("10,000 brackets that close", &nested, 400, "invalid-request"),
            ("2 MB", &large, 413, "payload-too-large"),
        ] {
            let (status_found, answer) = post(&service, "/task", body.to_owned()).await;
            assert_eq!((status_found, answer["type"].as_str()), (status, Some(format!("/problems/{code}").as_str())), "{what}: {answer}");
        }
        let (_, answer) = post(&service, "/task", large.clone()).await;
        assert_eq!(answer["limitBytes"], 1024 * 1024);
        let (status, _) = post(&service, "/task", vec![b'{', 0xFF, b'}']).await;
        assert_eq!(status, 400, "not UTF-8");
        for (content_type, expected) in [("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/json; charset=koi8-r", 415), ("application/json;charset=UTF-8", 202), ("application/vnd.x+json", 202)] {
            let agenda = content_type.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let request = service.post("/task").header("content-type", content_type).body(format!(r#"{{"agendaId":"{agenda}"}}"#));
            assert_eq!(service.json(request).await.0, expected, "{content_type}");
        }
        let none = service.post("/task").body("{}");
        assert_eq!(service.json(none).await.0, 415, "no Content-Type");
        let chunked = reqwest::Body::wrap_stream(futures::stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024]))));
        let (status, answer) = post(&service, "/task", chunked).await;
        assert_eq!(status, 413, "4 MB without a Content-Length: {answer}");

        // goes with v1: begin
        for (agenda, expected) in [("..%2Fx", 400), ("%00", 400), ("%FF", 400), ("a%2Fb", 400), ("%D0%BF", 400), ("", 400), ("a/b", 400), (&"x".repeat(129), 400)] {
            let (status, answer) = service.json(service.merge(agenda)).await;
            assert_eq!((status, &answer["type"]), (expected, &"/problems/invalid-request".into()), "{agenda:?}: {answer}");
        }
        let (line, body) = raw(&service, b"POST /api/v1/protocol/merge/byAgenda/../x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await;
        assert!(line.contains(" 400 ") && body.contains("/problems/invalid-request"), "{line} {body}");
        let (status, answer) = service.json(service.merge("1").header("content-type", "image/png").body(vec![0; 2 * 1024 * 1024])).await;
        assert_eq!((status, &answer["type"]), (413, &"/problems/payload-too-large".into()));
        // goes with v1: end

        for (path, expected) in [("/task/nonsense/status", 400), ("/task/0198c0de-0000-7000-8000-000000000000/status", 404), ("/protocol/0198c0de-0000-7000-8000-000000000000", 404), ("/nothing", 404), ("/task", 400),
            ("/task?agendaId=%2E%2E", 400), ("/api/tasks?limit=0", 400), ("/api/tasks?limit=201", 400), ("/api/tasks?cursor=x", 400), ("/api/tasks?stauts=FAILED", 400), ("/api/tasks?status=failed", 400), ("/protocol?agendaId=a&cursor=-1", 400)] {
            let (status, answer) = service.json(service.get(path)).await;
            assert_eq!(status, expected, "{path}: {answer}");
        }
        let (status, answer) = service.json(service.get(&format!("/task?agendaId={}", "x".repeat(10_000)))).await;
        assert_eq!((status, &answer["type"]), (414, &"/problems/uri-too-long".into()));
        let (status, answer) = service.json(service.get("/livez").header("x-large", "x".repeat(40_000))).await;
        assert_eq!((status, &answer["type"]), (431, &"/problems/headers-too-large".into()));
        let many = (0..150).fold(service.get("/livez"), |request, n| request.header(format!("x-{n}"), "1"));
        assert_eq!(service.json(many).await.0, 431);
        let refused = service.request(Method::PUT, "/task").send().await.unwrap();
        assert_eq!((refused.status().as_u16(), refused.headers()["content-type"].to_str().unwrap()), (405, "application/problem+json"));
        let allow = refused.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
        let (line, _) = raw(&service, b"NONSENSE\r\n\r\n").await;
        assert!(line.contains(" 400 "), "{line}");
        assert_eq!(service.get("/livez").send().await.unwrap().status(), 200);
    }
}

/// What has come of a head in time decides about the answer; a connection on which nothing came is closed without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_arrive_is_answered_408() {
    use protocol_bridge::{
        base::{clock::Clock, shutdown::Shutdown},
        http::{late_head::LateHead, server::serve_patiently},
    };
    let answer = |request: axum::extract::Request| async move {
        let late = request.extensions().get::<LateHead>().is_some();
        let status = if late { axum::http::StatusCode::REQUEST_TIMEOUT } else { axum::http::StatusCode::OK };
        (status, format!("{} {}", request.method(), request.uri()))
    };
    let router = axum::Router::new().fallback(answer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), Shutdown::new());
    let patience = std::time::Duration::from_millis(300);
    shutdown.spawn("test", serve_patiently(listener, router, Clock::system(), shutdown.clone(), patience));
    let send = async |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        crate::support::within(std::time::Duration::from_secs(10), "the end", stream.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    let late = send(b"POST /task HTTP/1.1\r\nHost: ").await;
    assert!(late.starts_with("HTTP/1.1 408 Request Timeout\r\n") && late.ends_with("\r\nconnection: close\r\n\r\nPOST /task"), "{late}");
    assert_eq!(send(b"").await, "");
    let kept = send(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HT").await;
    assert!(kept.starts_with("HTTP/1.1 200 OK") && kept.contains("HTTP/1.1 408 Request Timeout"), "{kept}");
    assert!(!send(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").await.contains("408"), "an idle connection is closed in silence");
    shutdown.force();
}

/// What hyper does not read to its end it answers by itself, without a body; everything up to 128 KiB of head and 64 KiB of target gets a problem.
#[tokio::test(flavor = "multi_thread")]
async fn heads_beyond_reading_are_answered_bare_and_the_service_goes_on() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    for (target, field, expected) in [(60_000, 0, "414"), (70_000, 0, "414"), (1, 40_000, "431")] {
        let request = format!(
            "GET /{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Large: {}\r\n\r\n",
            "x".repeat(target),
            "x".repeat(field)
        );
        let (line, body) = raw(&service, request.as_bytes()).await;
        assert!(line.contains(expected), "{target} {field}: {line}");
        let is_read = target < 65_534;
        assert_eq!(body.contains("/problems/"), is_read, "{target} {field}: {line} {body}");
    }
    let many = "X-Many: 1\r\n".repeat(300);
    let (line, body) = raw(&service, format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes()).await;
    assert!(line.contains("431") && body.is_empty(), "{line} {body}");
    // The connection is closed on a client that still sends, so the answer may be lost on the way.
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let _ = stream.write_all(format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Large: {}", "x".repeat(1024 * 1024)).as_bytes()).await;
    let mut answer = Vec::new();
    let _ = crate::support::within(std::time::Duration::from_secs(10), "the end", stream.read_to_end(&mut answer)).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(service.get("/livez").send().await.unwrap().status(), 200);
}

/// A balancer's connection that was idle for longer than its own patience of a minute is still good.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "waits for more than a minute: cargo nextest run --run-ignored only -E 'test(idle_connection)'"]
async fn an_idle_connection_is_still_good_after_a_minute() {
    let service = Service::start(TestDatabase::sqlite().await).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    for round in 0..2 {
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut part = [0; 1024];
            let read = stream.read(&mut part).await.unwrap();
            assert!(read > 0, "round {round}: closed");
            answer.extend_from_slice(&part[..read]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "round {round}: {}", String::from_utf8_lossy(&answer));
        if round == 0 {
            tokio::time::sleep(std::time::Duration::from_secs(65)).await;
        }
    }
}
