//! Who may call what: loopback rules without callers, keys and roles with them.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::{
    base::config::{CallerConfig, Role},
    callers::Roles,
    generator::documents::hex,
    http::access::{Access, ROUTES},
};
use reqwest::Method;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

fn caller(name: &str, roles: &[Role]) -> CallerConfig {
    let hash = hex(&Sha256::digest(format!("key-of-{name}").as_bytes()));
    CallerConfig { name: name.to_owned(), roles: roles.to_vec(), key_sha256: Some(hash), ..CallerConfig::default() }
}

on_both_databases! {
    async fn without_callers_only_our_own_hosts_are_answered(database: TestDatabase) {
        let service = Service::with(database, &[], |config| config.http.public_url = Some("https://minutes.example.org/".to_owned())).await;
        for (host, expected) in [("localhost", 200), ("localhost:1234", 200), ("127.0.0.1:8080", 200), ("[::1]:8080", 200), ("minutes.example.org", 200), ("evil.example.com", 403), ("localhost.evil.example", 403), ("192.168.1.7", 403)] {
            let response = service.get("/livez").header("host", host).send().await.unwrap();
            assert_eq!(response.status(), expected, "{host}");
        }
        for (origin, expected) in [("http://localhost:3000", 200), ("https://minutes.example.org", 200), ("https://evil.example.com", 403), ("null", 403)] {
            assert_eq!(service.get("/livez").header("origin", origin).send().await.unwrap().status(), expected, "{origin}");
        }
    }

    async fn every_route_asks_for_its_roles(database: TestDatabase) {
        let kinds = [("legacy", Role::Legacy), ("submit", Role::Submit), ("read", Role::Read), ("admin", Role::Admin)];
        let service = Service::with(database, &[], |config| config.callers = kinds.iter().map(|(name, role)| caller(name, &[*role])).collect()).await;
        let table = documented();
        let operations = operations();
        assert!(operations.len() >= 25, "the OpenAPI document names them all: {operations:?}");
        for (method, path) in operations {
            let allowed = table.get(&(method.clone(), path.clone())).unwrap_or_else(|| panic!("docs/roles.md lacks {method} {path}"));
            let real = filled(&path);
            let call = || service.request(Method::from_bytes(method.as_bytes()).unwrap(), &real);
            for key in [None, Some("wrong")] {
                let response = key.iter().fold(call(), reqwest::RequestBuilder::bearer_auth).send().await.unwrap();
                assert_eq!(response.status() == 401, allowed.is_some(), "{method} {path} with key {key:?}: {}", response.status());
                assert_eq!(response.headers().contains_key("www-authenticate"), allowed.is_some());
            }
            for (name, _) in kinds {
                let status = call().bearer_auth(format!("key-of-{name}")).send().await.unwrap().status();
                let may = allowed.as_ref().is_none_or(|roles| roles.iter().any(|role| role == name));
                assert_eq!(status != 403, may, "{method} {path} as {name}: {status}");
                assert_ne!(status, 401, "{method} {path} as {name}");
            }
        }
    }

    async fn who_asks_too_often_is_told_when_to_come_back(database: TestDatabase) {
        let callers = vec![caller("one", &[Role::Read]), caller("two", &[Role::Read])];
        let service = Service::with(database, &[("AUTH__RATE_LIMIT", "3/1h"), ("AUTH__ANONYMOUS_ROLES", r#"["legacy"]"#)], |config| config.callers = callers).await;
        let ask = async |key: Option<&str>| {
            let request = key.into_iter().fold(service.get("/task?agendaId=1"), reqwest::RequestBuilder::bearer_auth);
            request.send().await.unwrap()
        };
        for key in [Some("key-of-one"), Some("key-of-two"), None] {
            for _ in 0..3 {
                assert_eq!(ask(key).await.status(), 200, "{key:?}");
            }
            let refused = ask(key).await;
            assert_eq!(refused.status(), 429, "{key:?}");
            let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1100..=1200).contains(&after), "a third of an hour: {after}");
            let problem: serde_json::Value = refused.json().await.unwrap();
            assert_eq!(problem["type"], "/problems/too-many-requests", "{problem}");
        }
        assert_eq!(ask(Some("wrong")).await.status(), 429, "whoever proves nothing shares the share of those who prove nothing");
        let audit = service.get("/api/audit").bearer_auth("wrong").send().await.unwrap();
        assert_eq!(audit.status(), 401, "proof comes first");
        for path in ["/livez", "/openapi.json", "/problems"] {
            assert_eq!(service.get(path).send().await.unwrap().status(), 200, "{path} is never limited");
        }
        // goes with v1: begin
        for _ in 0..5 {
            let (status, answer) = service.json(service.merge("unknown")).await;
            assert_eq!((status, &answer["type"]), (404, &"/problems/agenda-not-found".into()), "v1 is never limited");
        }
        // goes with v1: end
    }

    async fn a_request_names_one_host(database: TestDatabase) {
        let closed = Service::with(database, &[], |config| config.callers = vec![caller("one", &[Role::Read])]).await;
        let open = Service::start(TestDatabase::sqlite().await).await;
        for service in [&closed, &open] {
            for (head, expected) in [
                ("GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n", "400"),
                ("GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n", "400"),
                ("GET /livez HTTP/1.1\r\nHost: local host\r\nConnection: close\r\n\r\n", "400"),
                ("GET /livez HTTP/1.1\r\nHost: user@localhost\r\nConnection: close\r\n\r\n", "400"),
                ("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200"),
                ("GET /livez HTTP/1.0\r\n\r\n", "200"),
            ] {
                let answer = raw(service, head.as_bytes()).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")) || answer.starts_with(&format!("HTTP/1.0 {expected} ")), "{head:?}: {answer}");
            }
        }
        let answer = raw(&open, b"GET http://evil.example.com/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let answer = raw(&open, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example.com\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
}

async fn raw(service: &Service, request: &[u8]) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    crate::support::within(std::time::Duration::from_secs(10), "an answer", stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Every operation of the OpenAPI document: method and path.
fn operations() -> Vec<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(protocol_bridge::http::openapi::document_text(true)).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone()))).collect()
}

/// A path with something in the place of its parameters; nothing that exists, so that no call has an effect.
fn filled(path: &str) -> String {
    let mut path = path.replace("{code}", "internal").replace("{file}", "start.js").replace("{agendaId}", "%20");
    while let (Some(open), Some(close)) = (path.find('{'), path.find('}')) {
        path.replace_range(open..=close, "x");
    }
    path
}

/// docs/roles.md: the roles of each operation; none: everyone.
fn documented() -> BTreeMap<(String, String), Option<Vec<String>>> {
    let lines = include_str!("../../docs/roles.md").lines().filter_map(|line| line.strip_prefix("| `"));
    lines
        .map(|line| {
            let (route, roles) = line.trim_end_matches(" |").split_once("` | ").expect("two columns");
            let (method, path) = route.split_once(' ').expect("method and path");
            let roles = (roles != "everyone").then(|| roles.split(", ").map(str::to_owned).collect());
            ((method.to_owned(), path.to_owned()), roles)
        })
        .collect()
}

/// The table that people read is the one that is enforced.
#[test]
fn the_documented_table_is_the_one_in_force() {
    let roles = [("legacy", Role::Legacy), ("submit", Role::Submit), ("read", Role::Read), ("admin", Role::Admin)];
    let lines = ROUTES.iter().map(|route| match route.access {
        Access::Open => format!("| `{} {}` | everyone |", route.method, route.path),
        Access::Roles(_) => {
            let allowed: Vec<&str> =
                roles.iter().filter(|(_, role)| route.access.allows(Roles::of(&[*role]))).map(|(name, _)| *name).collect();
            format!("| `{} {}` | {} |", route.method, route.path, allowed.join(", "))
        }
    });
    let documented: Vec<&str> = include_str!("../../docs/roles.md").lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(documented, lines.collect::<Vec<_>>());
}
