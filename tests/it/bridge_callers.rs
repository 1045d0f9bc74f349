//! Who calls v1, and by what that is known; and that every answer of v1 has its headers, whoever gave it.

use crate::support::{Service, TestDatabase, on_both_databases, within};
use protocol_bridge::{
    base::config::{CallerConfig, Role},
    generator::documents::hex,
};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

fn caller(name: &str, roles: &[Role]) -> CallerConfig {
    let hash = hex(&Sha256::digest(format!("key-of-{name}").as_bytes()));
    CallerConfig { name: name.to_owned(), roles: roles.to_vec(), key_sha256: Some(hash), ..CallerConfig::default() }
}

on_both_databases! {
    async fn an_unchanged_client_is_known_by_its_network_and_may_call_v1_only(database: TestDatabase) {
        let state_machine = CallerConfig {
            name: "agenda-state-machine".to_owned(),
            roles: vec![Role::Legacy],
            networks: vec!["127.0.0.0/8".to_owned()],
            user_agent: Some("Java/".to_owned()),
            ..CallerConfig::default()
        };
        let service = Service::with(database, &[], |config| config.callers = vec![state_machine]).await;
        let java = |request: reqwest::RequestBuilder| request.header("user-agent", "Java/17.0.2").header("accept", "text/html, image/gif, image/jpeg, */*; q=0.2");
        assert_eq!(java(service.merge("1")).send().await.unwrap().status(), 200);
        // It may bring a token that is meant for somebody else.
        assert_eq!(java(service.merge("1")).bearer_auth("of-another-service").send().await.unwrap().status(), 200);
        let refused = java(service.post("/task").json(&serde_json::json!({ "agendaId": "1" }))).send().await.unwrap();
        assert_eq!((refused.status().as_u16(), refused.headers().contains_key("www-authenticate")), (401, true));
        assert_eq!(service.merge("1").header("user-agent", "curl/8").send().await.unwrap().status(), 401, "the network alone proves nothing");
        assert!(service.metric("protocol_bridge_legacy_requests_total{caller=\"agenda-state-machine\",outcome=\"completed\"}") >= 2.0);
    }

    async fn calls_without_proof_may_do_what_is_configured_for_them(database: TestDatabase) {
        let service = Service::with(database, &[("AUTH__ANONYMOUS_ROLES", "[\"legacy\"]")], |config| config.callers = vec![caller("one", &[Role::Submit])]).await;
        assert_eq!(service.merge("1").header("x-caller", "java").send().await.unwrap().status(), 200);
        assert_eq!(service.post("/task").send().await.unwrap().status(), 401);
        assert_eq!(service.merge("1").bearer_auth("key-of-one").send().await.unwrap().status(), 403, "a known caller has its own roles");
        let (_, tasks) = service.json(service.get("/task?agendaId=1").header("x-caller", "java")).await;
        assert_eq!(tasks["items"].as_array().unwrap().len(), 1);
        let (_, tasks) = service.json(service.get("/task?agendaId=1").header("x-caller", "other")).await;
        assert_eq!(tasks["items"].as_array().unwrap().len(), 0);
    }

    async fn every_answer_has_the_headers_of_v1_those_from_the_door_too(database: TestDatabase) {
        let service = Service::with(database, &[("LEGACY__SUNSET", "2027-09-30T23:59:59Z"), ("AUTH__ANONYMOUS_ROLES", "[\"legacy\"]")], |config| {
            config.callers = vec![caller("submits", &[Role::Submit])];
        }).await;
        let path = "/api/v1/protocol/merge/byAgenda/";
        let (long, many) = ("x".repeat(9000), "X-Large: ".to_owned() + &"x".repeat(40_000));
        let requests = [
            (200, format!("POST {path}1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (202, format!("POST {path}1 HTTP/1.1\r\nHost: localhost\r\nPrefer: respond-async\r\nCache-Control: no-cache\r\nContent-Length: 0")),
            (400, format!("POST {path}%20 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (400, format!("POST {path}a/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (400, format!("POST {path}1 HTTP/1.1\r\nContent-Length: 0")),
            (403, format!("POST {path}1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key-of-submits\r\nContent-Length: 0")),
            (404, format!("POST {path}unknown-1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (405, format!("GET {path}1 HTTP/1.1\r\nHost: localhost")),
            (409, format!("POST {path}unsigned-1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (413, format!("POST {path}1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000")),
            (414, format!("POST {path}{long} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (422, format!("POST {path}wrong-1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0")),
            (431, format!("POST {path}1 HTTP/1.1\r\nHost: localhost\r\n{many}\r\nContent-Length: 0")),
            (504, format!("POST {path}slow-1 HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=0\r\nContent-Length: 0")),
        ];
        for (status, head) in requests {
            let mut stream = TcpStream::connect(service.address).await.unwrap();
            let body = if head.contains("2000000") { vec![b'x'; 2_000_000] } else { Vec::new() };
            stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
            let mut answer = Vec::new();
            within(Duration::from_secs(20), "an answer", stream.read_to_end(&mut answer)).await.unwrap();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let (answered, _) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(answered.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
            for header in [
                "deprecation: @1767225600", "sunset: Thu, 30 Sep 2027 23:59:59 GMT", "error-source: ", "x-request-id: ", "cache-control: no-store",
                r#"link: </task>; rel="successor-version", </docs/migration>; rel="deprecation""#,
            ] {
                assert!(answered.lines().any(|line| line.starts_with(header)), "{status} lacks {header}: {answered}");
            }
            let of_a_task = [200, 202, 404, 409, 422, 504].contains(&status);
            assert_eq!(answered.contains("\r\ntask-id: "), of_a_task, "{status}: {answered}");
        }
    }
}
