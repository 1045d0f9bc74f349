//! The migration's stages: to whom v1 is open, and what it says to the others.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::base::config::{CallerConfig, Role};
use serde_json::Value;

fn portal() -> CallerConfig {
    CallerConfig {
        name: "portal".to_owned(),
        roles: vec![Role::Legacy],
        // SHA-256 of "secret".
        key_sha256: Some("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".to_owned()),
        networks: vec![],
        user_agent: None,
        retired: false,
    }
}

on_both_databases! {
    async fn in_m3_v1_is_gone_to_all(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__STAGE", "M3")]).await;
        let response = service.merge("1").send().await.unwrap();
        assert_eq!(response.status(), 410);
        assert!(response.headers()["link"].to_str().unwrap().contains("</task>; rel=\"successor-version\""));
        assert_eq!((response.headers()["error-source"].to_str().unwrap(), response.headers()["deprecation"].to_str().unwrap()), ("bridge", "@1767225600"));
        let body: Value = response.json().await.unwrap();
        assert_eq!((&body["type"], &body["successor"]), (&"/problems/legacy-gone".into(), &"/task".into()));
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
    }

    async fn in_m2_only_a_proved_name_gets_through(database: TestDatabase) {
        let service = Service::with(database, &[("LEGACY__STAGE", "M2"), ("AUTH__DISABLED", "true")], |config| config.callers = vec![portal()]).await;
        assert_eq!(service.merge("1").header("x-caller", "portal").send().await.unwrap().status(), 410);
        assert_eq!(service.merge("1").bearer_auth("secret").send().await.unwrap().status(), 200);
        assert!(service.metric("protocol_bridge_legacy_requests_total{caller=\"portal\",outcome=\"completed\"}") >= 1.0);
    }
}
