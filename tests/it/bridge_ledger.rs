//! The ledger: who still calls v1, kept through restarts, over replicas and a `kill -9`; and the verdict on v1 that rests on it.

use crate::support::{Process, Service, TestDatabase, eventually, on_both_databases};
use protocol_bridge::{
    base::config::{CallerConfig, Config, Role},
    generator::documents::hex,
    store::Dialect,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// A caller whose key is its name.
fn caller(name: &str) -> CallerConfig {
    CallerConfig {
        name: name.to_owned(),
        roles: vec![Role::Legacy, Role::Submit, Role::Read],
        key_sha256: Some(hex(&Sha256::digest(name.as_bytes()))),
        ..CallerConfig::default()
    }
}

async fn migration(service: &Service) -> Value {
    let (status, body) = service.json(service.get("/api/migration").bearer_auth("one")).await;
    assert_eq!(status, 200, "{body}");
    body
}

fn of<'m>(migration: &'m Value, name: &str) -> &'m Value {
    migration["callers"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|caller| caller["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {migration}"))
}

on_both_databases! {
    async fn a_call_is_on_record_with_its_submit(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, _) = service.json(service.merge("1").header("x-caller", "agenda")).await;
        assert_eq!(status, 200);
        let known = service.database.fetch("SELECT name, proved, first_v1_us = last_v1_us, last_v2_us FROM caller").await;
        assert_eq!(known.len(), 1);
        assert_eq!((known[0][0].as_str(), known[0][1].as_i64()), (Some("agenda"), Some(0)));
        assert_eq!(service.database.number("SELECT calls FROM legacy_call WHERE caller = 'agenda' AND outcome = 'received'").await, 1);
        for _ in 0..3 {
            service.json(service.merge("1").header("x-caller", "agenda")).await;
        }
        service.json(service.get("/task?agendaId=1").header("x-caller", "agenda")).await;
        eventually(Duration::from_secs(5), "counts are written in batches", || async {
            let counts = service.database.fetch("SELECT outcome, calls FROM legacy_call ORDER BY outcome").await;
            let seen_on_v2 = service.database.number("SELECT COUNT(*) FROM caller WHERE last_v2_us IS NOT NULL").await;
            json!(counts) == json!([["completed", 4], ["received", 4]]) && seen_on_v2 == 1
        }).await;
    }

    async fn calls_refused_at_the_door_are_on_record_when_they_are_answered(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, _) = service.json(service.merge("..%2Fx").header("x-caller", "agenda")).await;
        assert_eq!(status, 400);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM caller WHERE last_v1_us IS NOT NULL").await, 1);
        eventually(Duration::from_secs(5), "its outcome follows", || async {
            json!(service.database.fetch("SELECT outcome FROM legacy_call ORDER BY outcome").await) == json!([["received"], ["refused"]])
        }).await;
    }

    async fn made_up_names_do_not_fill_the_ledger(database: TestDatabase) {
        let service = Service::start(database).await;
        let calls = (0..700).map(|n| service.json(service.merge("%20").header("x-caller", format!("name-{n}"))));
        for call in futures::future::join_all(calls).await {
            assert_eq!(call.0, 400);
        }
        service.ledger.flush().await;
        let names = service.database.number("SELECT COUNT(*) FROM caller").await;
        assert!((100..=501).contains(&names), "{names} names");
        let text = service.metrics.render();
        let labels = text.lines().filter(|line| line.starts_with("protocol_bridge_legacy_requests_total") && !line.contains("caller=\"other\"")).count();
        assert_eq!(labels, 0, "no caller is configured, so all of them are `other`");
    }

    async fn a_fresh_ledger_is_not_removable_and_says_so(database: TestDatabase) {
        let service = Service::start(database).await;
        eventually(Duration::from_secs(5), "the ledger watches", || async { migration(&service).await["watchedSince"].is_string() }).await;
        let fresh = migration(&service).await;
        assert_eq!((&fresh["removable"], &fresh["reason"], &fresh["stage"]), (&false.into(), &"observed 0 of 90 days".into(), &"M1".into()), "{fresh}");
        // Ninety days later, nobody having called.
        service.database.execute("UPDATE setting SET value = CAST(CAST(value AS BIGINT) - 7776001000000 AS TEXT) WHERE name = 'ledger_watched_since_us'").await;
        assert_eq!(migration(&service).await["removable"], true);
        eventually(Duration::from_secs(20), "the metric says so", || async { service.metric("protocol_bridge_legacy_removable") > 0.5 }).await;
        // Any call, answered or not.
        assert_eq!(service.merge("%20").send().await.unwrap().status(), 400);
        let called = migration(&service).await;
        assert_eq!(called["removable"], false);
        assert!(called["reason"].as_str().unwrap().starts_with("unknown called v1 at "), "{called}");
        eventually(Duration::from_secs(20), "the metrics say so", || async {
            service.metric("protocol_bridge_legacy_removable") < 0.5 && service.metric("protocol_bridge_legacy_callers_active") > 0.5
        }).await;
    }

    async fn who_is_left_is_told_after_a_restart_and_on_every_replica(database: TestDatabase) {
        let configure = |config: &mut Config| config.callers = vec![caller("one"), caller("two"), caller("never")];
        let quiet = [("LEGACY__QUIET_PERIOD", "3s")];
        let service = Service::with(database, &quiet, configure).await;
        for name in ["one", "two"] {
            assert_eq!(service.merge("1").bearer_auth(name).send().await.unwrap().status(), 200);
        }
        // One of them moves, and its last v1 call grows old.
        assert_eq!(service.json(service.post("/task").bearer_auth("one").json(&json!({ "agendaId": "2" }))).await.0, 202);
        let before = migration(&service).await;
        assert_eq!((of(&before, "one")["state"].as_str(), of(&before, "two")["state"].as_str(), of(&before, "never")["state"].as_str()), (Some("mixed"), Some("legacy-only"), Some("silent")), "{before}");
        assert_eq!((of(&before, "two")["proof"].as_str(), of(&before, "two")["configured"].as_bool()), (Some("proved"), Some(true)));
        let since = of(&before, "two")["lastV1At"].clone();
        assert!(since.is_string() && of(&before, "two")["lastV2At"].is_null() && of(&before, "two")["lastAddress"] == "127.0.0.1", "{before}");
        assert_eq!(of(&before, "two")["v1Calls"].as_array().unwrap().iter().find(|calls| calls["outcome"] == "received").unwrap()["calls"], 1, "{before}");
        let reason = before["reason"].as_str().unwrap();
        assert!(reason.contains("two called v1 at") && reason.ends_with("not seen on v2 and not retired: two, never"), "{reason}");

        let database = service.stop().await;
        let service = Service::with(database, &quiet, configure).await;
        let after = migration(&service).await;
        assert_eq!((&of(&after, "two")["lastV1At"], &after["watchedSince"]), (&since, &before["watchedSince"]), "{after}");
        eventually(Duration::from_secs(10), "one's last v1 call is older than the quiet period", || async { of(&migration(&service).await, "one")["state"] == "migrated" }).await;
        if service.database.dialect == Dialect::Postgres {
            let other = service.replica(&quiet, configure).await;
            assert_eq!(other.merge("1").bearer_auth("two").send().await.unwrap().status(), 200);
            let (here, there) = (migration(&service).await, migration(&other).await);
            assert_eq!(of(&here, "two")["lastV1At"], of(&there, "two")["lastV1At"]);
            assert_ne!(of(&here, "two")["lastV1At"], since, "the call on the other replica is known here");
            assert_eq!(of(&here, "two")["state"], "legacy-only");
        }
    }

    async fn a_kill_right_after_a_callers_only_call_forgets_nothing(database: TestDatabase) {
        for (agenda, status) in [("council-2026-11", 200), ("%20", 400)] {
            let mut process = Process::serve(&database, &[]).await;
            let call = process.client.post(format!("{}/api/v1/protocol/merge/byAgenda/{agenda}", process.url)).header("x-caller", format!("only-{status}"));
            assert_eq!(call.send().await.unwrap().status(), status);
            process.kill();
            let process = Process::serve(&database, &[]).await;
            let account = process.json("/api/migration").await;
            assert_eq!(of(&account, &format!("only-{status}"))["state"], "legacy-only", "{account}");
        }
    }

    async fn whoever_only_says_a_name_is_kept_apart(database: TestDatabase) {
        let service = Service::with(database, &[("AUTH__ANONYMOUS_ROLES", "[\"legacy\", \"submit\"]")], |config| config.callers = vec![caller("one")]).await;
        service.json(service.get("/task?agendaId=1").header("x-caller", "one")).await;
        service.json(service.merge("%20").header("x-caller", "one")).await;
        let account = migration(&service).await;
        assert_eq!((of(&account, "one")["state"].as_str(), of(&account, "one (claimed)")["state"].as_str()), (Some("silent"), Some("mixed")), "{account}");
        assert_eq!(of(&account, "one (claimed)")["proof"], "claimed");
    }
}
