//! Whose tasks a caller with the role `legacy` sees: its own, those it joined, and their protocols. Others are not there for it.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::{
    base::config::{CallerConfig, Role},
    generator::documents::hex,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A caller whose key is its name.
fn caller(name: &str, role: Role) -> CallerConfig {
    CallerConfig {
        name: name.to_owned(),
        roles: vec![role],
        key_sha256: Some(hex(&Sha256::digest(name.as_bytes()))),
        ..CallerConfig::default()
    }
}

on_both_databases! {
    async fn a_legacy_caller_sees_what_is_its_own(database: TestDatabase) {
        let callers = vec![caller("one", Role::Legacy), caller("two", Role::Legacy), caller("v2", Role::Submit), caller("looks", Role::Read)];
        let service = Service::with(database, &[], |config| config.callers = callers).await;
        let get = async |path: &str, key: &str| service.get(path).bearer_auth(key).send().await.unwrap().status().as_u16();
        let (status, protocol) = service.json(service.merge("1").bearer_auth("one")).await;
        assert_eq!(status, 200, "{protocol}");
        let (task, id) = (protocol["taskId"].as_str().unwrap(), protocol["protocolId"].as_str().unwrap());
        let paths = [
            format!("/task/{task}/status"), format!("/task/{task}/events"), format!("/protocol/{id}"), format!("/protocol/{id}/document.pdf"),
        ];
        for path in &paths {
            assert_eq!((get(path, "one").await, get(path, "two").await, get(path, "v2").await, get(path, "looks").await), (200, 404, 200, 200), "{path}");
        }
        let result = format!("/task/{task}/result");
        assert_eq!((get(&result, "one").await, get(&result, "two").await, get(&result, "looks").await), (303, 404, 303));

        // The second caller joins a task that a third submitted, and follows it from then on.
        let (_, submitted) = service.json(service.post("/task").bearer_auth("v2").json(&json!({ "agendaId": "slow-1" }))).await;
        let joined = submitted["taskId"].as_str().unwrap();
        let status_of = format!("/task/{joined}/status");
        assert_eq!((get(&status_of, "one").await, get(&status_of, "two").await), (404, 404));
        let (status, timeout) = service.json(service.merge("slow-1").bearer_auth("two").header("prefer", "wait=0")).await;
        assert_eq!((status, &timeout["taskId"]), (504, &joined.into()));
        assert_eq!((get(&status_of, "one").await, get(&status_of, "two").await), (404, 200));
        service.agendas.release();
        assert_eq!(service.json(service.merge("slow-1").bearer_auth("two")).await.0, 200);

        let list = async |path: &str, key: &str| -> Vec<Value> {
            let (status, body) = service.json(service.get(path).bearer_auth(key)).await;
            assert_eq!(status, 200, "{body}");
            body["items"].as_array().unwrap().clone()
        };
        for (path, one, two, v2) in [("/task?agendaId=1", 1, 0, 1), ("/task?agendaId=slow-1", 0, 1, 1), ("/protocol?agendaId=1", 1, 0, 1), ("/protocol?agendaId=slow-1", 0, 1, 1)] {
            assert_eq!((list(path, "one").await.len(), list(path, "two").await.len(), list(path, "v2").await.len()), (one, two, v2), "{path}");
        }
    }

    async fn own_lists_are_paged_without_gaps(database: TestDatabase) {
        let callers = vec![caller("one", Role::Legacy), caller("v2", Role::Submit)];
        let service = Service::with(database, &[], |config| config.callers = callers).await;
        for n in 0..6 {
            let call = service.merge("1").header("cache-control", "no-cache");
            let (status, _) = service.json(if n % 2 == 0 { call.bearer_auth("one") } else {
                service.agendas.retitle(&format!("title {n}"));
                call.bearer_auth("one")
            }).await;
            assert_eq!(status, 200);
        }
        for path in ["/task?agendaId=1&limit=2", "/protocol?agendaId=1&limit=2"] {
            let mut seen = Vec::new();
            let mut url = path.to_owned();
            loop {
                let (status, page) = service.json(service.get(&url).bearer_auth("one")).await;
                assert_eq!(status, 200, "{page}");
                seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["createdAt"].as_str().unwrap().to_owned()));
                let Some(cursor) = page["nextCursor"].as_str() else { break };
                url = format!("{path}&cursor={cursor}");
            }
            let (_, all) = service.json(service.get(&path.replace("&limit=2", "")).bearer_auth("v2")).await;
            let all: Vec<String> = all["items"].as_array().unwrap().iter().map(|item| item["createdAt"].as_str().unwrap().to_owned()).collect();
            assert_eq!(seen, all, "{path}");
        }
    }
}
