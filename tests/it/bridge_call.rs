//! The v1 call: waits, answers, times out, and gives what it owes.

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use protocol_bridge::{domain::time::Timestamp, store::Fault};
use serde_json::Value;
use std::time::{Duration, Instant};

const HEADERS: [(&str, &str); 3] = [
    ("deprecation", "@1767225600"),
    ("link", r#"</task>; rel="successor-version", </docs/migration>; rel="deprecation""#),
    ("cache-control", "no-store"),
];

fn has_v1_headers(response: &reqwest::Response, source: &str) {
    for (name, value) in HEADERS {
        assert_eq!(response.headers().get(name).map(|header| header.to_str().unwrap()), Some(value), "{name} of {}", response.status());
    }
    assert_eq!(response.headers()["error-source"], source, "{}", response.status());
    assert!(response.headers().contains_key("x-request-id"));
}

on_both_databases! {
    async fn a_call_is_held_until_the_protocol_is_there(database: TestDatabase) {
        let service = Service::start(database).await;
        let response = service.merge("42").send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        has_v1_headers(&response, "task");
        let task = response.headers()["task-id"].to_str().unwrap().to_owned();
        assert!(!response.headers().contains_key("sunset"), "none is configured");
        let protocol: Value = response.json().await.unwrap();
        assert_eq!(protocol["agendaId"], "42");
        assert_eq!(protocol["version"], 1);
        assert_eq!(protocol["taskId"], task.as_str());
        assert_eq!(protocol["questions"][0]["title"], "О бюджете");
        let keys: Vec<&str> = protocol.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["protocolId", "taskId", "agendaId", "number", "version", "date", "title", "body", "questions", "warnings", "documents", "createdAt"]
        );
        let url = protocol["documents"][0]["url"].as_str().unwrap();
        let document = service.get(url).send().await.unwrap();
        assert_eq!(document.status(), 200);
        assert!(document.bytes().await.unwrap().starts_with(b"%PDF-"));
    }

    async fn a_time_out_names_the_task_and_the_next_call_gets_what_is_owed(database: TestDatabase) {
        let settings = [("LEGACY__TIMEOUT", "1s"), ("LEGACY__SUNSET", "2027-09-30T23:59:59Z")];
        let service = Service::configured(database, &settings).await;
        let start = Instant::now();
        let response = service.merge("slow-1").send().await.expect("an answer");
        let took = start.elapsed();
        assert!((Duration::from_secs(1)..Duration::from_millis(1200)).contains(&took), "answered after {took:?}");
        assert_eq!(response.status(), 504);
        has_v1_headers(&response, "bridge");
        assert_eq!(response.headers()["sunset"], "Thu, 30 Sep 2027 23:59:59 GMT");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert!(!response.headers().contains_key("retry-after"), "Feign would post again by itself");
        let task = response.headers()["task-id"].to_str().unwrap().to_owned();
        assert_eq!(response.headers()["location"].to_str().unwrap(), format!("/task/{task}/status"));
        let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let text = response.text().await.unwrap();
        assert!(text.len() < 400, "{} bytes: {text}", text.len());
        assert!(text.starts_with(&format!(r#"{{"taskId":"{task}","statusUrl":"/task/{task}/status","type":"/problems/bridge-timeout""#)), "{text}");
        let body: Value = serde_json::from_str(&text).unwrap();
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["taskId", "statusUrl", "type", "title", "status", "detail", "phase", "attempt", "retryAfterSeconds", "instance"]);
        assert_eq!((&body["phase"], &body["attempt"], &body["retryAfterSeconds"]), (&"COLLECT".into(), &1.into(), &30.into()));
        assert_eq!(body["instance"], format!("/requests/{request}"));

        service.agendas.release();
        assert_eq!(service.finished(&task).await["status"], "COMPLETED");
        let asked = service.agendas.asked();
        let start = Instant::now();
        let response = service.merge("slow-1").send().await.expect("an answer");
        assert!(start.elapsed() < Duration::from_millis(1200), "answered after {:?}", start.elapsed());
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["task-id"], task.as_str(), "the task whose answer is owed");
        has_v1_headers(&response, "task");
        assert!(service.agendas.asked() <= asked + 1, "at most the question whether it changed");
        drop(response.bytes().await);
        for _ in 0..5 {
            let (status, protocol) = service.json(service.merge("slow-1")).await;
            assert_eq!((status, &protocol["version"]), (200, &1.into()));
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM protocol").await, 1);
    }

    async fn an_owed_answer_whose_agenda_was_corrected_is_not_given(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__TIMEOUT", "30s")]).await;
        let (status, timeout) = service.json(service.merge("slow-2").header("prefer", "wait=0")).await;
        assert_eq!(status, 504, "{timeout}");
        service.agendas.release();
        service.finished(timeout["taskId"].as_str().unwrap()).await;
        service.agendas.retitle("Исправленное заседание");
        let (status, protocol) = service.json(service.merge("slow-2")).await;
        assert_eq!((status, &protocol["version"], &protocol["title"]), (200, &2.into(), &"Исправленное заседание".into()));
    }

    async fn no_cache_takes_no_owed_answer_and_other_callers_are_owed_none(database: TestDatabase) {
        let service = Service::start(database).await;
        let (_, timeout) = service.json(service.merge("slow-3").header("prefer", "wait=0").header("x-caller", "one")).await;
        let owed = timeout["taskId"].as_str().unwrap().to_owned();
        service.agendas.release();
        service.finished(&owed).await;
        let task_of = async |caller: &str, cache: &str| {
            let response = service.merge("slow-3").header("x-caller", caller).header("cache-control", cache).send().await.unwrap();
            assert_eq!(response.status(), 200);
            response.headers()["task-id"].to_str().unwrap().to_owned()
        };
        assert_ne!(task_of("two", "max-age=0").await, owed, "another caller's answer");
        assert_ne!(task_of("one", "no-cache").await, owed, "the caller wants a fresh one");
    }

    async fn a_task_that_was_not_ready_is_generated_once_it_is(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, body) = service.json(service.merge("unsigned-9")).await;
        assert_eq!((status, &body["type"]), (409, &"/problems/agenda-not-ready".into()), "{body}");
        service.agendas.sign();
        let (status, protocol) = service.json(service.merge("unsigned-9")).await;
        assert_eq!((status, &protocol["version"]), (200, &1.into()), "{protocol}");
        assert_ne!(protocol["taskId"], body["taskId"], "a new call is a new try");
    }

    async fn a_failure_reaches_the_caller_at_once_without_a_poll(database: TestDatabase) {
        // No look at the database comes between: the next one would be in a minute.
        let service = Service::configured(database, &[("LEGACY__POLL_INTERVAL", "1m")]).await;
        let calls = futures::future::join_all((0..5).map(|n| service.merge(&format!("slow-unsigned-{n}")).send()));
        let release = async {
            eventually(Duration::from_secs(10), "all wait", || async { service.metric("protocol_bridge_legacy_waiters") >= 5.0 && service.agendas.asked() == 5 }).await;
            service.agendas.release();
            Instant::now()
        };
        let (answers, released) = futures::join!(calls, release);
        // From the source's answer on: the check, the commit, the wake-up and the answer; far from the next poll, with room for a machine that is busy.
        assert!(released.elapsed() < Duration::from_secs(10), "{:?}", released.elapsed());
        for answer in answers {
            let answer = answer.expect("an answer");
            assert_eq!(answer.status(), 409);
            has_v1_headers(&answer, "task");
        }
    }

    async fn a_database_that_hangs_or_breaks_is_answered_in_time(database: TestDatabase) {
        let service = Service::start(database).await;
        for (fault, times) in [(Fault::FailBefore, 1000), (Fault::Delay(Duration::from_secs(20)), 1)] {
            service.db.faults().arm("submit_task", fault, times);
            let start = Instant::now();
            let response = service.merge("1").send().await.unwrap();
            assert!(start.elapsed() < Duration::from_secs(5), "answered after {:?}", start.elapsed());
            assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "5"));
            has_v1_headers(&response, "bridge");
            assert_eq!(response.json::<Value>().await.unwrap()["type"], "/problems/unavailable");
            service.db.faults().disarm("submit_task");
        }
    }

    async fn a_preference_lowers_the_wait_and_never_raises_it(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__TIMEOUT", "1s")]).await;
        for (wanted, applied) in [("wait=0", "wait=0"), ("wait=700", "wait=1")] {
            let response = service.merge("slow-p").header("prefer", wanted).send().await.unwrap();
            assert_eq!((response.status().as_u16(), response.headers()["preference-applied"].to_str().unwrap()), (504, applied));
        }
    }

    async fn failures_are_told_as_problems_and_never_owed(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__TIMEOUT", "20s")]).await;
        for (agenda, status, code) in [("unknown-1", 404, "agenda-not-found"), ("unsigned-1", 409, "agenda-not-ready"), ("wrong-1", 422, "agenda-invalid")] {
            let response = service.merge(agenda).send().await.expect("an answer");
            assert_eq!(response.status(), status, "{agenda}");
            has_v1_headers(&response, "task");
            let task = response.headers()["task-id"].to_str().unwrap().to_owned();
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["type"], format!("/problems/{code}"));
            assert_eq!(body["taskId"], task.as_str());
            if code != "agenda-not-found" {
                assert!(body["errors"][0]["pointer"].as_str().unwrap().starts_with("/questions/0"), "{body}");
            }
            let again = service.merge(agenda).send().await.expect("an answer");
            assert_ne!(again.headers()["task-id"], task.as_str(), "a new call is a new try");
        }
        eventually(Duration::from_secs(5), "no failed task's answer is owed", || async {
            service.database.number("SELECT COUNT(*) FROM owed_answer").await == 0
        }).await;
    }

    async fn twenty_calls_at_once_are_one_task_and_the_same_bytes(database: TestDatabase) {
        let service = Service::start(database).await;
        let calls = futures::future::join_all((0..20).map(|_| async {
            let response = service.merge("slow-4").send().await.expect("an answer");
            assert_eq!(response.status(), 200);
            (response.headers()["task-id"].clone(), response.bytes().await.unwrap())
        }));
        let release = async {
            eventually(Duration::from_secs(10), "all wait", || async { service.metric("protocol_bridge_legacy_waiters") >= 20.0 }).await;
            service.agendas.release();
        };
        let (answers, ()) = futures::join!(calls, release);
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        assert_eq!(service.agendas.asked(), 1);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 1);
        assert!(service.metric("protocol_bridge_legacy_waiters") < 0.5);
    }

    async fn a_call_that_does_not_want_to_wait_is_accepted(database: TestDatabase) {
        let service = Service::start(database).await;
        let response = service.merge("slow-5").header("prefer", "respond-async").send().await.unwrap();
        assert_eq!(response.status(), 202);
        has_v1_headers(&response, "bridge");
        assert_eq!(response.headers()["preference-applied"], "respond-async");
        let task = response.headers()["task-id"].to_str().unwrap().to_owned();
        assert_eq!(response.headers()["location"].to_str().unwrap(), format!("/task/{task}/status"));
        let body: Value = response.json().await.unwrap();
        assert_eq!((&body["taskId"], &body["joined"]), (&task.as_str().into(), &false.into()));
        let (status, joined) = service.json(service.post("/task").json(&serde_json::json!({ "agendaId": "slow-5" }))).await;
        assert_eq!((status, &joined["taskId"], &joined["joined"]), (202, &task.as_str().into(), &true.into()));
    }

    async fn a_full_house_answers_at_once_and_the_task_is_accepted(database: TestDatabase) {
        let service = Service::configured(database, &[("LEGACY__MAX_WAITERS_PER_CALLER", "1")]).await;
        let first = service.merge("slow-6").send();
        let second = async {
            eventually(Duration::from_secs(10), "the first waits", || async { service.metric("protocol_bridge_legacy_waiters") >= 1.0 }).await;
            let (status, body) = service.json(service.merge("slow-7")).await;
            service.agendas.release();
            (status, body)
        };
        let (first, (status, body)) = futures::join!(first, second);
        assert_eq!(first.unwrap().status(), 200);
        assert_eq!((status, &body["type"]), (504, &"/problems/bridge-timeout".into()));
        assert_eq!(service.finished(body["taskId"].as_str().unwrap()).await["status"], "COMPLETED");
    }

    async fn a_draining_instance_sends_its_waiters_away_with_their_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let call = service.merge("slow-8").send();
        let drain = async {
            eventually(Duration::from_secs(10), "it waits", || async { service.metric("protocol_bridge_legacy_waiters") >= 1.0 }).await;
            service.draining.cancel();
            service.engine.hub().drain();
        };
        let (response, ()) = futures::join!(call, drain);
        let response = response.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "1"));
        assert_eq!(response.headers()["connection"], "close");
        has_v1_headers(&response, "bridge");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["type"], "/problems/draining");
        assert!(body["taskId"].is_string());
        assert_eq!(service.get("/readyz").send().await.unwrap().status(), 503);
        assert_eq!(service.get("/livez").send().await.unwrap().status(), 200);
    }
}

/// From the commit of a failure to the v1 caller's answer. Run by hand: `cargo nextest run --run-ignored only --no-capture -E 'test(how_long_a_failure_takes)'`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "what it measures is what it is for")]
async fn how_long_a_failure_takes_to_reach_the_caller() {
    for database in [TestDatabase::sqlite().await, TestDatabase::postgres().await] {
        let dialect = database.dialect;
        let service = Service::configured(database, &[("LEGACY__POLL_INTERVAL", "1m")]).await;
        let mut took = Vec::new();
        for n in 0..300 {
            let answer = service.merge(&format!("unsigned-{n}")).send().await.expect("an answer");
            let answered = std::time::SystemTime::now();
            assert_eq!(answer.status(), 409);
            let task = answer.headers()["task-id"].to_str().unwrap().to_owned();
            let finished: Timestamp = service.status_of(&task).await["finishedAt"].as_str().unwrap().parse().unwrap();
            let finished = std::time::UNIX_EPOCH + Duration::from_micros(u64::try_from(finished.as_micros()).unwrap());
            took.push(answered.duration_since(finished).unwrap_or_default());
        }
        took.sort();
        eprintln!("{dialect:?}: p50 {:?}, p99 {:?}, most {:?}", took[150], took[297], took[299]);
    }
}
