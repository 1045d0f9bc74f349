//! A real Prometheus scrapes the real program, over a restart, while known calls are made; then every expression of every dashboard and rule is asked for. M-01, M-03.

use crate::support::{
    Process, TestDatabase,
    dashboards::{alerts, dashboards, labels_in, metrics_in, panel, substituted},
    eventually,
    prometheus::{Prometheus, seconds_now},
};
use protocol_bridge::{base::metrics::descriptions, generator::documents::hex};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::{fmt::Write as _, fs, net::TcpListener, time::Duration};

const LIMIT: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn every_expression_is_answered_and_the_numbers_are_right() {
    // The numbers of a day are known only if it is one day.
    eventually(Duration::from_mins(4), "midnight has passed", async || (120..86_400 - 70).contains(&until_midnight())).await;
    let database = TestDatabase::sqlite().await;
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").to_string();
    let (configuration, listen) = (configure(&database), [("PROTOCOL_BRIDGE__HTTP__LISTEN", address.as_str())]);
    let serve = async || Process::start(&["serve", "--config", &configuration], &listen, database.data_dir.path()).await;
    let service = Service { process: serve().await };
    let prometheus = Prometheus::start(&address, "prometheus").await;

    let number = async |title: &str| value(&prometheus, title).await;
    eventually(LIMIT, "a quiet process is known to be quiet", async || {
        number("Open dead letters").await == Some(0.0) && number("Callers left").await == Some(0.0)
    })
    .await;
    for zero in ["504s today", "Last v1 call", "Longest wait now", "Can v1 be deleted?", "Waiting", "Running", "Claiming", "Newest caller"]
    {
        assert_eq!(number(zero).await, Some(0.0), "{zero}");
    }

    // Five calls, one of which fails and one of which gives up waiting.
    for _ in 0..3 {
        assert_eq!(service.v1("agenda", "council-2026-11", None).await, 200);
    }
    assert_eq!(service.v1("portal", "no-such-agenda", None).await, 404);
    service.post("/api/engine/pause", &json!({})).await;
    eventually(LIMIT, "the pause is seen", async || number("Claiming").await == Some(1.0)).await;
    let held = async {
        assert_eq!(service.v1("agenda", "allotments-2026", Some("wait=4")).await, 504);
    };
    let seen = eventually(LIMIT, "the wait is seen", async || number("Longest wait now").await.is_some_and(|seconds| seconds > 1.0));
    tokio::join!(held, seen);
    service.post("/api/engine/resume", &json!({})).await;
    service.post("/api/tasks", &json!({ "kind": "demo", "payload": { "failUntilAttempt": 2 } })).await;
    eventually(LIMIT, "the first calls are counted", async || calls(&prometheus).await == (4.0, 1.0)).await;
    let dead_letters = async || of(&prometheus, "Dead letters by reason", "reason", "agenda-not-found").await;
    eventually(LIMIT, "the first dead letter counts", async || dead_letters().await == Some(1.0)).await;
    eventually(LIMIT, "all ends", async || number("Waiting").await == Some(0.0) && ended(&prometheus).await == (5.0, 1.0)).await;

    // A restart: every counter is back at 0.
    let mut service = service;
    service.process.interrupt();
    service.process.ended(LIMIT).await;
    service.process = serve().await;
    for _ in 0..2 {
        assert_eq!(service.v1("portal", "council-2026-11", None).await, 200);
    }
    eventually(LIMIT, "all calls are counted", async || calls(&prometheus).await == (4.0, 3.0)).await;
    eventually(LIMIT, "all tasks are counted", async || ended(&prometheus).await == (7.0, 1.0)).await;
    for (title, right) in [
        ("Callers left", 2.0),
        ("504s today", 1.0),
        ("Longest wait now", 0.0),
        ("Can v1 be deleted?", 0.0),
        ("Waiting", 0.0),
        ("Running", 0.0),
        ("Open dead letters", 0.0),
        ("Claiming", 0.0),
        ("Replicas", 1.0),
        ("Transport", 1.0),
        ("Hints", 1.0),
        ("Messages waiting", 0.0),
    ] {
        assert_eq!(number(title).await, Some(right), "{title}");
    }
    for (outcome, right) in [("completed", 5.0), ("failed", 1.0), ("timeout", 1.0), ("disconnected", 0.0)] {
        assert_eq!(of(&prometheus, "Outcomes per day", "outcome", outcome).await, Some(right), "{outcome}");
    }
    for missing in ["calls", "observation", "callers"] {
        assert_eq!(of(&prometheus, "What is missing", "by", missing).await, Some(1.0), "{missing}");
    }
    assert_eq!(of(&prometheus, "Dead letters by reason", "reason", "agenda-not-found").await, Some(1.0), "it is still open");
    let last_call = number("Last v1 call").await.expect("there was one") / 1000.0;
    assert!((0.0..120.0).contains(&(seconds_now() - last_call)), "the last call was just now");
    let deletable = number("Deletable at the earliest").await.expect("it can be told") / 1000.0;
    assert!((deletable - last_call - 90.0 * 86400.0).abs() < 1.0, "ninety days after the last call");

    // One more of a kind that there was before the restart, and the first of another.
    service.post("/api/tasks", &json!({ "kind": "protocol", "payload": { "agendaId": "no-such-agenda" } })).await;
    service.post("/api/tasks", &json!({ "kind": "demo", "payload": { "failUntilAttempt": 9 } })).await;
    eventually(LIMIT, "the second dead letter counts", async || dead_letters().await == Some(2.0)).await;
    eventually(LIMIT, "the first that is our fault counts", async || number("Open dead letters").await == Some(1.0)).await;

    every_expression_is_answered(&prometheus).await;
    v1_does_not_hide_the_answer_times_of_the_rest(&prometheus).await;
    rules_are_as_documented(&prometheus).await;
    eventually(LIMIT, "the sunset has passed", async || prometheus.firing().await == ["ProtocolBridgeLegacyCallAfterSunset"]).await;

    // Down is not 0.
    service.process.kill();
    eventually(LIMIT, "it is seen to be down", async || prometheus.value("up").await == Some(0.0)).await;
    for panel in dashboards().into_iter().flat_map(|dashboard| dashboard.panels) {
        for target in panel.targets.iter().filter(|target| target.instant) {
            let said = prometheus.query(&substituted(&target.expr)).await.expect("an answer");
            assert!(said.is_empty(), "{} says {said:?} of a process that is down", panel.title);
        }
    }
    let log = prometheus.log();
    assert!(!log.contains("level=error") && !log.contains("out of order") && !log.contains("append failed"), "{log}");
}

struct Service {
    process: Process,
}

impl Service {
    /// The status that a v1 call ends with.
    async fn v1(&self, caller: &str, agenda: &str, prefer: Option<&str>) -> u16 {
        let url = format!("{}/api/v1/protocol/merge/byAgenda/{agenda}", self.process.url);
        // Each call a task of its own, even if the one before is not yet noted as answered.
        let call = self.process.client.post(url).bearer_auth(caller).header("cache-control", "no-cache");
        let call = if let Some(prefer) = prefer { call.header("prefer", prefer) } else { call };
        call.send().await.expect("an answer").status().as_u16()
    }

    async fn post(&self, path: &str, body: &serde_json::Value) {
        let call = self.process.client.post(format!("{}{path}", self.process.url)).bearer_auth("operator").json(body);
        let status = call.send().await.expect("an answer").status();
        assert!(status.is_success(), "{path}: {status}");
    }
}

/// Two callers of v1, an operator and Prometheus, each with its name for a key; v1's sunset has passed. The file's path.
fn configure(database: &TestDatabase) -> String {
    let mut text = format!("data_dir = \"data\"\n[database]\nurl = \"{}\"\n[engine]\nretry_base = \"50ms\"\ndemo = true\n", database.url);
    text += "[legacy]\ndeprecated_since = \"2020-01-01T00:00:00Z\"\nsunset = \"2020-06-01T00:00:00Z\"\n";
    for (name, roles) in [("agenda", "legacy"), ("portal", "legacy"), ("operator", "admin"), ("prometheus", "read")] {
        let hash = hex(&Sha256::digest(name.as_bytes()));
        writeln!(text, "[[callers]]\nname = \"{name}\"\nroles = [\"{roles}\"]\nkey_sha256 = \"{hash}\"")
            .expect("a string takes everything");
    }
    let file = database.data_dir.path().join("protocol-bridge.toml");
    fs::write(&file, text).expect("written");
    file.display().to_string()
}

/// The number that a panel shows.
async fn value(prometheus: &Prometheus, title: &str) -> Option<f64> {
    prometheus.value(&substituted(&panel(title).targets[0].expr)).await.filter(|value| !value.is_nan())
}

/// The newest number that a panel shows of the series whose `label` is `value`.
async fn of(prometheus: &Prometheus, title: &str, label: &str, value: &str) -> Option<f64> {
    let target = &panel(title).targets[0];
    let series = prometheus.shown(target).await.unwrap_or_else(|error| panic!("{title}: {error}"));
    let (_, values) = series.into_iter().find(|(labels, _)| labels.get(label).is_some_and(|is| is == value))?;
    values.last().copied().filter(|value| !value.is_nan())
}

/// What the bars of today say of the two callers.
async fn calls(prometheus: &Prometheus) -> (f64, f64) {
    let calls = async |caller| of(prometheus, "v1 calls per caller and day", "caller", caller).await.unwrap_or(f64::NAN);
    (calls("agenda").await, calls("portal").await)
}

/// Tasks that completed and that failed.
async fn ended(prometheus: &Prometheus) -> (f64, f64) {
    let ended = async |status| of(prometheus, "Ended tasks", "status", status).await.unwrap_or(f64::NAN);
    (ended("COMPLETED").await, ended("FAILED").await)
}

async fn every_expression_is_answered(prometheus: &Prometheus) {
    let mut faults = Vec::new();
    for panel in dashboards().into_iter().flat_map(|dashboard| dashboard.panels) {
        for target in &panel.targets {
            let place = format!("{}: {}: {}", panel.dashboard, panel.title, target.expr);
            match prometheus.shown(target).await {
                Err(error) => faults.push(format!("{place}\n    {error}")),
                Ok(series) => {
                    if !series.iter().any(|(_, values)| values.iter().any(|value| value.is_finite())) {
                        faults.push(format!("{place}\n    is empty"));
                    }
                    for label in labels_in(&target.legend) {
                        if !series.iter().all(|(labels, _)| labels.contains_key(label)) {
                            faults.push(format!("{place}\n    has no label {label}"));
                        }
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// M-04: a v1 call was held for four seconds; what does not wait by design was quick all the same, and the panel says so.
async fn v1_does_not_hide_the_answer_times_of_the_rest(prometheus: &Prometheus) {
    let slowest = async |title: &str, target: usize| {
        let series = prometheus.shown(&panel(title).targets[target]).await.expect("an answer");
        series.into_iter().flat_map(|(_, values)| values).filter(|value| value.is_finite()).fold(0.0, f64::max)
    };
    let (held, answered) = (slowest("Wait times", 1).await, slowest("Answer times", 1).await);
    assert!(held > 2.0, "the 95 % of v1 calls are at {held} s");
    assert!(answered < 2.0, "the 95 % of the rest are at {answered} s");
}

/// Every rule has run without a fault on metrics that the program has, and is one of those that the other tests look at.
async fn rules_are_as_documented(prometheus: &Prometheus) {
    let rules = prometheus.rules().await;
    let loaded: Vec<&str> = rules.iter().filter(|rule| rule["type"] == "alerting").map(|rule| rule["name"].as_str().unwrap()).collect();
    assert_eq!(loaded, alerts().iter().map(|alert| alert.name.as_str()).collect::<Vec<_>>());
    let exported: Vec<String> =
        prometheus.query("{job=\"protocol-bridge\"}").await.unwrap().into_iter().map(|(labels, _)| labels["__name__"].clone()).collect();
    for rule in &rules {
        if rule["type"] == "recording" {
            let recorded = prometheus.query(rule["name"].as_str().unwrap()).await.expect("an answer");
            assert!(recorded.iter().any(|(_, value)| value.is_finite()), "{} is empty: {recorded:?}", rule["name"]);
        }
        assert_eq!((rule["health"].as_str(), rule["lastError"].as_str().unwrap_or_default()), (Some("ok"), ""), "{rule:#}");
        for metric in metrics_in(rule["query"].as_str().unwrap()) {
            assert!(exported.iter().any(|name| name == metric), "{}: nothing is known of {metric}", rule["name"]);
        }
    }
    for metric in descriptions() {
        assert!(exported.iter().any(|name| name.starts_with(&metric.name)), "{} is declared and never exported", metric.name);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole seconds are enough")]
fn until_midnight() -> i64 {
    86_400 - (seconds_now() as i64).rem_euclid(86_400)
}
