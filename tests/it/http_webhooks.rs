//! Subscriptions and deliveries through the API; and case W-01: no address that the guard refuses is ever connected to, and nothing that a receiver says comes out.

use crate::support::{
    Service, TestDatabase, eventually, on_both_databases,
    receivers::{Manner, Receiver, verified_by_python},
};
use protocol_bridge::base::config::{Config, SubscriptionConfig};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);
pub const KEY: (&str, &str) = ("AUTH__SECRET_KEY", "a secret key of tests, long enough for one");

fn open(config: &mut Config) {
    config.events.allow_private_targets = true;
    config.events.schedule = vec![Duration::ZERO, Duration::from_millis(50)];
}

async fn make(service: &Service, url: &str) -> (u16, Value) {
    service.json(service.post("/api/subscriptions").json(&json!({ "url": url }))).await
}

/// Case W-01.
const REFUSED: [&str; 16] = [
    "http://127.0.0.1/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://0/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://[fd00::1]/",
    "https://10.0.0.1:8443/",
    "https://192.168.1.1/",
    "http://public.example.org/",
    "https://public.example.org:22/",
    "https://localhost/",
    "https://[fe80::1]/",
];

on_both_databases! {
    async fn w_01_addresses_that_lead_inside_are_refused_at_the_door(database: TestDatabase) {
        let service = Service::configured(database, &[KEY]).await;
        for url in REFUSED {
            let (status, problem) = make(&service, url).await;
            assert_eq!((status, &problem["type"]), (422, &json!("/problems/target-refused")), "{url}: {problem}");
            let submission = json!({ "agendaId": "a", "callbackUrl": url });
            assert_eq!(service.json(service.post("/task").json(&submission)).await.0, 422, "{url}");
        }
        for url in ["https://user@10.0.0.1/", "file:///etc/passwd", "gopher://e.org/", "https://"] {
            assert_eq!(make(&service, url).await.0, 400, "{url}");
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM subscription").await, 0);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
        // And at a change.
        let (status, made) = make(&service, "https://hooks.invalid/one").await;
        assert_eq!(status, 201, "{made}");
        let path = format!("/api/subscriptions/{}", made["subscriptionId"].as_str().unwrap());
        for url in REFUSED {
            assert_eq!(service.json(service.request(Method::PATCH, &path).json(&json!({ "url": url }))).await.0, 422, "{url}");
        }
        assert_eq!(service.json(service.get(&path)).await.1["url"], "https://hooks.invalid/one");
    }

    async fn what_was_allowed_once_is_refused_at_each_connection_and_nobody_is_connected_to(database: TestDatabase) {
        let inside = Receiver::start(Manner::Answers(200)).await;
        let service = Service::with(database, &[KEY], open).await;
        let (status, made) = make(&service, &inside.url()).await;
        assert_eq!(status, 201, "{made}");
        let database = service.stop().await;
        // The switch is off again.
        let service = Service::configured(database, &[KEY]).await;
        service.protocol_of("a").await;
        eventually(LIMIT, "it was tried", || async {
            service.database.number("SELECT COUNT(*) FROM delivery WHERE attempts > 0").await == 1
        })
        .await;
        let seen = service.json(service.get("/api/deliveries")).await.1;
        let said = seen["items"][0]["lastStatus"].as_str().unwrap();
        assert!(said.starts_with("refused: "), "{said}");
        let ping = service.json(service.post(&format!("/api/subscriptions/{}/ping", made["subscriptionId"].as_str().unwrap()))).await.1;
        assert_eq!(ping["arrived"], false);
        assert_eq!(inside.connections(), 0);
    }

    async fn a_webhook_from_its_making_to_its_end(database: TestDatabase) {
        let service = Service::with(database, &[KEY], open).await;
        let receiver = Receiver::start(Manner::Says("a word that nobody outside is to read")).await;
        let (status, made) = make(&service, &receiver.url()).await;
        assert_eq!(status, 201, "{made}");
        let secret = made["secret"].as_str().unwrap();
        assert!(secret.starts_with("whsec_"));
        let id = made["subscriptionId"].as_str().unwrap();
        let path = format!("/api/subscriptions/{id}");
        let (_, listed) = service.json(service.get("/api/subscriptions")).await;
        assert!(!listed.to_string().contains("whsec_") && listed["items"][0]["subscriptionId"] == *id, "the secret is shown once");
        let ping = service.json(service.post(&format!("{path}/ping"))).await;
        assert_eq!(ping, (200, json!({ "arrived": true, "status": "HTTP 200" })));
        let protocol = service.protocol_of("a").await;
        eventually(LIMIT, "it is told", || async { receiver.count() == 2 }).await;
        let taken = receiver.taken();
        assert_eq!(taken[0].json()["type"], "ObesrabuoProtocolBridgePing");
        assert_eq!(taken[1].json()["data"]["protocolId"], protocol["protocolId"]);
        assert_eq!(verified_by_python(taken, &[secret]).await, 2);
        let deliveries = format!("/api/deliveries?subscriptionId={id}&state=delivered");
        eventually(LIMIT, "it is noted", || async { service.json(service.get(&deliveries)).await.1["items"].as_array().unwrap().len() == 1 }).await;
        let (_, listed) = service.json(service.get(&deliveries)).await;
        assert!(!listed.to_string().contains("nobody outside"), "{listed}");
        let delivery = &listed["items"][0];
        assert_eq!((&delivery["attempts"], &delivery["lastStatus"], &delivery["state"]), (&json!(1), &json!("HTTP 200"), &json!("delivered")));
        let again = service.json(service.post(&format!("/api/deliveries/{}/resend", delivery["deliveryId"].as_str().unwrap()))).await;
        assert_eq!((again.0, &again.1["eventId"]), (202, &delivery["eventId"]));
        eventually(LIMIT, "it is told again", || async { receiver.count() == 3 }).await;
        let (status, rotated) = service.json(service.post(&format!("{path}/rotate-secret"))).await;
        assert_eq!(status, 200, "{rotated}");
        assert!(rotated["secret"] != *secret && rotated["previousSecretUntil"].is_string(), "{rotated}");
        let off = service.json(service.request(Method::PATCH, &path).json(&json!({ "enabled": false, "types": ["ObesrabuoProtocolGenerationFailed"] }))).await;
        assert_eq!((&off.1["enabled"], &off.1["types"]), (&json!(false), &json!(["ObesrabuoProtocolGenerationFailed"])));
        assert_eq!(service.request(Method::DELETE, &path).send().await.unwrap().status(), 204);
        for gone in [service.get(&path), service.request(Method::DELETE, &path), service.post(&format!("{path}/ping"))] {
            assert_eq!(gone.send().await.unwrap().status(), 404);
        }
        for wrong in [json!({}), json!({ "all": false }), json!({ "all": true, "subscriptionId": id }), json!({ "subscription": id })] {
            assert_eq!(service.json(service.post("/api/deliveries/resend").json(&wrong)).await.0, 400, "{wrong}");
        }
        assert_eq!(service.json(service.post("/api/deliveries/resend").json(&json!({ "all": true }))).await, (200, json!({ "resent": 0 })));
        for wrong in [json!({ "url": "https://e.org", "types": ["x"] }), json!({ "url": "https://e.org", "types": "x" }), json!({ "types": [] })] {
            assert_eq!(service.json(service.post("/api/subscriptions").json(&wrong)).await.0, 400, "{wrong}");
        }
        let (_, audit) = service.json(service.get("/api/audit")).await;
        for action in ["subscription.create", "subscription.rotate-secret", "subscription.update", "subscription.delete", "delivery.resend"] {
            assert!(audit.to_string().contains(action), "{action}: {audit}");
        }
    }

    async fn a_configured_one_is_read_only_and_follows_its_configuration(database: TestDatabase) {
        let receiver = Receiver::start(Manner::Answers(200)).await;
        let url = receiver.url();
        let written = SubscriptionConfig {
            name: "agenda".to_owned(),
            url: url.clone(),
            types: Vec::new(),
            secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
            secret_file: None,
        };
        let configured = |config: &mut Config| {
            open(config);
            config.events.subscriptions = vec![written.clone()];
        };
        let service = Service::with(database, &[KEY], configured).await;
        let (_, listed) = service.json(service.get("/api/subscriptions")).await;
        assert_eq!((&listed["items"][0]["name"], &listed["items"][0]["configured"]), (&json!("agenda"), &json!(true)));
        let id = listed["items"][0]["subscriptionId"].as_str().unwrap().to_owned();
        let path = format!("/api/subscriptions/{id}");
        assert_eq!(service.request(Method::DELETE, &path).send().await.unwrap().status(), 403);
        assert_eq!(service.json(service.request(Method::PATCH, &path).json(&json!({ "enabled": false }))).await.0, 403);
        assert_eq!(service.json(service.post(&format!("{path}/rotate-secret"))).await.0, 403);
        service.protocol_of("a").await;
        eventually(LIMIT, "it is told", || async { receiver.count() == 1 }).await;
        assert_eq!(verified_by_python(receiver.taken(), &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).await, 1);
        let database = service.stop().await;
        let service = Service::with(database, &[KEY], configured).await;
        assert_eq!(service.json(service.get("/api/subscriptions")).await.1["items"][0]["subscriptionId"], *id, "it is the same one after a start");
        let database = service.stop().await;
        let service = Service::configured(database, &[KEY]).await;
        assert_eq!(service.json(service.get("/api/subscriptions")).await.1["items"], json!([]));
    }
}

/// Without a key there is nothing to seal secrets with; on SQLite one is made.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_webhooks_need_a_key() {
    let service = Service::start(TestDatabase::postgres().await).await;
    let (status, problem) = make(&service, "https://hooks.invalid/one").await;
    assert_eq!(status, 422);
    assert!(problem["detail"].as_str().unwrap().contains("auth.secret_key"), "{problem}");
    assert_eq!(service.get("/api/callback-secret").send().await.unwrap().status(), 422);
    let service = Service::start(TestDatabase::sqlite().await).await;
    assert_eq!(make(&service, "https://hooks.invalid/one").await.0, 201);
    let secret = service.json(service.get("/api/callback-secret")).await.1;
    assert_eq!(service.json(service.get("/api/callback-secret")).await.1, secret);
    assert!(secret["secret"].as_str().unwrap().starts_with("whsec_"));
}
