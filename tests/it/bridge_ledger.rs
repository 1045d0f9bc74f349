//! The ledger: who still calls v1, kept through restarts.

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use std::time::Duration;

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
            serde_json::json!(counts) == serde_json::json!([["completed", 4], ["received", 4]]) && seen_on_v2 == 1
        }).await;
    }

    async fn calls_refused_at_the_door_are_on_record_too(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, _) = service.json(service.merge("..%2Fx").header("x-caller", "agenda")).await;
        assert_eq!(status, 400);
        eventually(Duration::from_secs(5), "the refused call is on record", || async {
            service.database.number("SELECT COUNT(*) FROM caller WHERE last_v1_us IS NOT NULL").await == 1
                && serde_json::json!(service.database.fetch("SELECT outcome FROM legacy_call ORDER BY outcome").await) == serde_json::json!([["received"], ["refused"]])
        }).await;
    }

    async fn made_up_names_do_not_fill_the_ledger(database: TestDatabase) {
        let service = Service::start(database).await;
        let calls = (0..700).map(|n| service.json(service.merge("%20").header("x-caller", format!("name-{n}"))));
        for call in calls {
            assert_eq!(call.await.0, 400);
        }
        service.ledger.flush().await;
        let names = service.database.number("SELECT COUNT(*) FROM caller").await;
        assert!((100..=501).contains(&names), "{names} names");
        let text = service.metrics.render();
        let labels = text.lines().filter(|line| line.starts_with("protocol_bridge_legacy_requests_total") && !line.contains("caller=\"other\"")).count();
        assert_eq!(labels, 0, "no caller is configured, so all of them are `other`");
    }
}
