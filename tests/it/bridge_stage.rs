//! The migration's stages: to whom v1 is open, and what it says to the others.

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use protocol_bridge::{
    base::config::{Brownout, CallerConfig, Config, Role},
    domain::time::Timestamp,
};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use std::time::Duration;

fn portal() -> CallerConfig {
    CallerConfig {
        name: "portal".to_owned(),
        roles: vec![Role::Legacy],
        // SHA-256 of "secret".
        key_sha256: Some("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".to_owned()),
        ..CallerConfig::default()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Sends a call that v1 does not answer, and looks at everything such an answer has to have.
async fn closed(call: RequestBuilder, code: &str) -> Value {
    let response: Response = call.send().await.expect("an answer");
    let headers = response.headers().clone();
    assert_eq!(response.status(), 410);
    assert_eq!(headers["link"], r#"</task>; rel="successor-version", </docs/migration>; rel="deprecation""#);
    assert_eq!((headers["error-source"].to_str().unwrap(), headers["deprecation"].to_str().unwrap()), ("bridge", "@1767225600"));
    assert!(!headers.contains_key("retry-after"), "a client would act on it by itself");
    let body: Value = response.json().await.expect("a problem");
    assert_eq!((&body["type"], &body["successor"]), (&format!("/problems/{code}").into(), &"/task".into()), "{body}");
    body
}

on_both_databases! {
    async fn in_m3_v1_is_gone_to_all_whatever_else_is_wrong(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__STAGE", "M3")]).await;
        let calls = [
            service.merge("1"),
            service.merge("%20"),
            service.merge("a/b"),
            service.merge("1").body(vec![0; 2 * 1024 * 1024]),
            service.merge("1").header("prefer", "respond-async"),
        ];
        for call in calls {
            closed(call, "legacy-gone").await;
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
        eventually(Duration::from_secs(5), "all are on record", || async {
            service.database.number("SELECT CAST(COALESCE(SUM(calls), 0) AS BIGINT) FROM legacy_call WHERE outcome = 'gone'").await == 5
        }).await;
    }

    async fn in_m3_a_missing_key_does_not_matter_either(database: TestDatabase) {
        let service = Service::with(database, &[("LEGACY__STAGE", "M3")], |config| config.callers = vec![portal()]).await;
        closed(service.merge("1"), "legacy-gone").await;
        closed(service.merge("1").bearer_auth("wrong"), "legacy-gone").await;
        closed(service.merge("1").bearer_auth("secret"), "legacy-gone").await;
        assert_eq!(service.post("/task").send().await.unwrap().status(), 401, "the task API asks for keys as before");
    }

    async fn in_m2_only_a_proved_name_gets_through(database: TestDatabase) {
        let service = Service::with(database, &[("LEGACY__STAGE", "M2"), ("AUTH__ANONYMOUS_ROLES", "[\"legacy\"]")], |config| config.callers = vec![portal()]).await;
        closed(service.merge("1").header("x-caller", "portal"), "legacy-gone").await;
        closed(service.merge("1").bearer_auth("wrong"), "legacy-gone").await;
        assert_eq!(service.merge("1").bearer_auth("secret").send().await.unwrap().status(), 200);
        assert!(service.metric("protocol_bridge_legacy_requests_total{caller=\"portal\",outcome=\"completed\"}") >= 1.0);
        assert!(service.metric("protocol_bridge_legacy_requests_total{caller=\"portal\",outcome=\"gone\"}") < 0.5, "whoever says a name does not have it");
    }

    async fn a_cut_off_caller_and_a_retired_one_are_shown_out(database: TestDatabase) {
        let cut = |time: &str, name: &str| {
            let hash = protocol_bridge::generator::documents::hex(&<sha2::Sha256 as sha2::Digest>::digest(name.as_bytes()));
            CallerConfig { name: name.to_owned(), cut_off: Some(at(time)), key_sha256: Some(hash), ..portal() }
        };
        let retired = CallerConfig { retired: true, cut_off: None, ..cut("2020-01-01T00:00:00Z", "retired") };
        let callers = vec![cut("2020-01-01T00:00:00Z", "past"), cut("2999-01-01T00:00:00Z", "future"), retired];
        let service = Service::with(database, &[], |config: &mut Config| config.callers = callers).await;
        let body = closed(service.merge("1").bearer_auth("past"), "legacy-gone").await;
        assert!(body["detail"].as_str().unwrap().contains("2020-01-01"), "{body}");
        closed(service.merge("1").bearer_auth("retired"), "legacy-gone").await;
        assert_eq!(service.get("/task?agendaId=1").bearer_auth("retired").send().await.unwrap().status(), 403, "its key opens nothing");
        assert_eq!(service.merge("1").bearer_auth("future").send().await.unwrap().status(), 200);
    }

    async fn a_brownout_says_until_when(database: TestDatabase) {
        let windows = vec![Brownout { from: at("2020-01-01T00:00:00Z"), to: at("2020-01-02T00:00:00Z") }, Brownout { from: at("2020-01-01T00:00:00Z"), to: at("2999-01-01T00:00:00Z") }];
        let service = Service::with(database, &[], |config| config.legacy.brownouts = windows).await;
        let body = closed(service.merge("1"), "legacy-brownout").await;
        assert!(body["detail"].as_str().unwrap().contains("2999-01-01T00:00:00Z"), "{body}");
        let (_, migration) = service.json(service.get("/api/migration")).await;
        assert_eq!(migration["brownouts"][1]["active"], true, "{migration}");
        assert_eq!(migration["brownouts"][0]["active"], false, "{migration}");
        assert_eq!(service.get("/problems/legacy-brownout").send().await.unwrap().status(), 200);
    }
}
