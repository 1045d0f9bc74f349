//! Idempotency keys: the same request again is the same task, another one under the same key is refused (I-01, I-03).

use crate::{
    http_webhooks::KEY,
    support::{Service, TestDatabase, on_both_databases},
};
use protocol_bridge::{
    base::config::{CallerConfig, Role},
    generator::documents::hex,
    store::Dialect,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

async fn post(service: &Service, key: &str, body: &str) -> (u16, Value) {
    service
        .json(service.post("/task").header("idempotency-key", key).header("content-type", "application/json").body(body.to_owned()))
        .await
}

on_both_databases! {
    async fn a_key_stands_for_one_content(database: TestDatabase) {
        let service = Service::configured(database, &[KEY]).await;
        let (status, first) = post(&service, "k1", r#"{"agendaId":"abc","clientReference":"r","runAt":"2031-01-01T00:00:00Z"}"#).await;
        assert_eq!((status, &first["joined"]), (202, &false.into()));
        let (status, respelt) = post(&service, "\"k1\"", "{ \"runAt\":\"2031-01-01T03:00:00+03:00\",\n \"clientReference\": \"r\", \"agendaId\": \"abc\" }").await;
        assert_eq!((status, &respelt["taskId"], &respelt["joined"]), (202, &first["taskId"], &true.into()), "order, spaces and quotes do not matter");
        for (what, body) in [
            ("one letter of the agenda", r#"{"agendaId":"abd","clientReference":"r","runAt":"2031-01-01T00:00:00Z"}"#),
            ("runAt", r#"{"agendaId":"abc","clientReference":"r","runAt":"2031-01-01T00:00:01Z"}"#),
            ("no runAt", r#"{"agendaId":"abc","clientReference":"r"}"#),
            ("callbackUrl", r#"{"agendaId":"abc","clientReference":"r","runAt":"2031-01-01T00:00:00Z","callbackUrl":"https://hooks.invalid/h"}"#),
        ] {
            let (status, body) = post(&service, "k1", body).await;
            assert_eq!((status, &body["type"]), (422, &"/problems/idempotency-key-reused".into()), "{what}");
        }
        let generic = service.post("/api/tasks").json(&json!({ "payload": { "agendaId": "xyz" }, "idempotencyKey": "k1" }));
        assert_eq!(service.json(generic).await.0, 422, "both ways to submit share the scope");
        // goes with v1: begin
        let (status, v1) = service.json(service.merge("abc").header("idempotency-key", "k1").header("prefer", "respond-async")).await;
        assert_eq!((status, &v1["taskId"]), (202, &first["taskId"]), "v1 reads no key; the agenda is its key");
        // goes with v1: end
    }

    async fn keys_are_checked_at_the_door(database: TestDatabase) {
        let service = Service::start(database).await;
        for (n, (key, expected)) in [("a".to_owned(), 202), ("k".repeat(255), 202), (String::new(), 400), ("k".repeat(256), 400), ("\"open".to_owned(), 400)].into_iter().enumerate() {
            let body = format!(r#"{{"agendaId":"key-{n}"}}"#);
            let (status, answer) = post(&service, &key, &body).await;
            assert_eq!(status, expected, "{key:?}: {answer}");
        }
        let cyrillic = service.post("/task").header("idempotency-key", "ключ".as_bytes()).json(&json!({ "agendaId": "key-x" }));
        let (status, body) = service.json(cyrillic).await;
        assert_eq!((status, &body["errors"][0]["pointer"]), (400, &"/header/Idempotency-Key".into()));
        for key in ["ключ", "", "a\u{7}b", &"k".repeat(256)] {
            let (status, body) = service.json(service.post("/api/tasks").json(&json!({ "payload": {}, "idempotencyKey": key }))).await;
            assert_eq!((status, &body["errors"][0]["pointer"]), (400, &"/idempotencyKey".into()), "{key:?}");
        }
        let both = |header: &str| service.post("/api/tasks").header("idempotency-key", header).json(&json!({ "payload": {}, "idempotencyKey": "one" }));
        assert_eq!(service.json(both("one")).await.0, 202);
        assert_eq!(service.json(both("two")).await.0, 400, "both, and different");
        let twice = service.post("/task").header("idempotency-key", "a").header("idempotency-key", "b").json(&json!({ "agendaId": "key-y" }));
        assert_eq!(service.json(twice).await.0, 400);
    }

    async fn each_caller_has_keys_of_its_own(database: TestDatabase) {
        let caller = |name: &str| CallerConfig {
            name: name.to_owned(),
            roles: vec![Role::Submit],
            key_sha256: Some(hex(&Sha256::digest(format!("key-of-{name}").as_bytes()))),
            networks: vec![],
            user_agent: None,
            retired: false,
            cut_off: None,
        };
        let service = Service::with(database, &[], |config| config.callers = vec![caller("one"), caller("two")]).await;
        let submit = |name: &str, agenda: &str| {
            let request = service.post("/task").header("idempotency-key", "k").bearer_auth(format!("key-of-{name}"));
            service.json(request.json(&json!({ "agendaId": agenda, "runAt": "2096-01-01T00:00:00Z" })))
        };
        let (status, first) = submit("one", "1").await;
        assert_eq!(status, 202, "{first}");
        let (status, other) = submit("two", "2").await;
        assert_eq!((status, &other["joined"]), (202, &false.into()), "another caller's key is another key: {other}");
        assert_ne!(first["taskId"], other["taskId"]);
        assert_eq!(submit("two", "1").await.0, 422);
        assert_eq!(submit("one", "1").await.1["taskId"], first["taskId"]);
    }

    async fn parallel_repeats_are_one_task(database: TestDatabase) {
        // On PostgreSQL two nodes; a SQLite file is served by one process.
        let service = Service::start(database).await;
        let other = match service.database.dialect {
            Dialect::Postgres => Some(service.replica(&[], |_| {}).await),
            Dialect::Sqlite => None,
        };
        for round in 0..100 {
            // Either way to submit; where it is the same agenda, too, the key must not lose against it.
            let (path, body) = match round % 2 {
                0 => ("/api/tasks", json!({ "payload": { "round": round } })),
                _ => ("/task", json!({ "agendaId": format!("round-{round}"), "runAt": "2096-01-01T00:00:00Z" })),
            };
            let calls = (0..20).map(|call| {
                let service = other.as_ref().filter(|_| call % 2 == 1).unwrap_or(&service);
                service.json(service.post(path).header("idempotency-key", format!("round-{round}")).json(&body))
            });
            let answers = futures::future::join_all(calls).await;
            assert!(answers.iter().all(|(status, answer)| *status == 202 && answer["taskId"] == answers[0].1["taskId"]), "{answers:?}");
            assert_eq!(answers.iter().filter(|(_, answer)| answer["joined"] == false).count(), 1);
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 100);
    }
}
