//! The task API: submit, follow, look up, cancel.

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn submit(service: &Service, agenda: &str) -> Value {
    let (status, body) = service.json(service.post("/task").json(&json!({ "agendaId": agenda, "clientReference": "ref-1" }))).await;
    assert_eq!(status, 202, "{body}");
    body
}

fn id(task: &Value) -> &str {
    task["taskId"].as_str().expect("a task id")
}

on_both_databases! {
    async fn a_task_is_submitted_followed_and_its_protocol_found(database: TestDatabase) {
        let service = Service::start(database).await;
        let response = service.post("/task").json(&json!({ "agendaId": "7", "clientReference": "ref-1" })).send().await.unwrap();
        assert_eq!(response.status(), 202);
        let location = response.headers()["location"].to_str().unwrap().to_owned();
        assert!(response.headers().contains_key("retry-after"));
        let task: Value = response.json().await.unwrap();
        assert_eq!(location, format!("/task/{}/status", id(&task)));
        let keys: Vec<&str> = task.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["taskId", "kind", "agendaId", "clientReference", "status", "joined", "phase", "progress", "attempt", "maxAttempts", "nextAttemptAt", "createdAt",
             "startedAt", "finishedAt", "lastError", "errorMessage", "failure", "protocolId", "links"]
        );
        assert_eq!((&task["kind"], &task["clientReference"], &task["joined"]), (&"protocol".into(), &"ref-1".into(), &false.into()));
        let done = service.finished(id(&task)).await;
        assert_eq!(done["status"], "COMPLETED");
        assert_eq!(done["links"]["cancel"], Value::Null);
        let result = service.get(done["links"]["result"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(result.status(), 303);
        let protocol_url = result.headers()["location"].to_str().unwrap().to_owned();
        let (status, protocol) = service.json(service.get(&protocol_url)).await;
        assert_eq!((status, &protocol["protocolId"]), (200, &done["protocolId"]));
        let (_, protocols) = service.json(service.get("/protocol?agendaId=7")).await;
        assert_eq!((&protocols["items"][0], &protocols["nextCursor"]), (&protocol, &Value::Null));
        let (_, tasks) = service.json(service.get("/task?agendaId=7")).await;
        assert_eq!(tasks["items"], json!([done]));
        let (_, listed) = service.json(service.get("/api/tasks?status=COMPLETED&kind=protocol&limit=1")).await;
        assert_eq!(listed["items"], json!([done]));
        let (_, shown) = service.json(service.get(&format!("/api/tasks/{}", id(&done)))).await;
        let steps: Vec<&str> = shown["steps"].as_array().expect("its steps").iter().map(|step| step["name"].as_str().expect("a name")).collect();
        assert!(steps.iter().any(|step| step.starts_with("COLLECT")) && steps.iter().any(|step| step.starts_with("MERGE")), "{steps:?}");
        assert_eq!((&shown["taskId"], &shown["attempts"][0]["outcome"], &shown["attempts"][0]["claim"]), (&done["taskId"], &"completed".into(), &1.into()));
    }

    async fn a_task_is_never_404_right_after_its_202(database: TestDatabase) {
        let service = Service::start(database).await;
        for n in 0..1000 {
            let (status, task) = service.json(service.post("/api/tasks").json(&json!({ "payload": { "note": n } }))).await;
            assert_eq!(status, 202, "{task}");
            service.status_of(id(&task)).await;
        }
    }

    async fn a_long_poll_answers_on_a_change_or_at_its_end(database: TestDatabase) {
        let service = Service::start(database).await;
        let task = submit(&service, "slow-1").await;
        let url = format!("/task/{}/status", id(&task));
        eventually(Duration::from_secs(10), "it is collecting", || async { service.status_of(id(&task)).await["phase"] == "COLLECT" }).await;

        let start = Instant::now();
        let same = service.get(&url).header("prefer", "wait=1").send().await.unwrap();
        assert!((Duration::from_secs(1)..Duration::from_millis(1500)).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert_eq!(same.headers()["preference-applied"], "wait=1");
        let tag = same.headers()["etag"].clone();
        assert_eq!(service.get(&url).header("if-none-match", &tag).send().await.unwrap().status(), 304);
        let start = Instant::now();
        let behind = service.get(&url).header("prefer", "wait=20").header("if-none-match", "\"0\"").send().await.unwrap();
        assert_eq!(behind.status(), 200);
        assert!(start.elapsed() < Duration::from_secs(1), "who is behind need not wait");

        let start = Instant::now();
        let waiting = service.get(&url).header("prefer", "wait=300").send();
        let release = async {
            eventually(Duration::from_secs(5), "it waits", || async { service.engine.hub().waiters() > 0 }).await;
            service.agendas.release();
        };
        let (changed, ()) = futures::join!(waiting, release);
        let changed = changed.unwrap();
        assert_eq!(changed.headers()["preference-applied"], "wait=55");
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_ne!(changed.headers()["etag"], tag);
    }

    async fn events_end_with_the_final_state(database: TestDatabase) {
        let service = Service::start(database).await;
        let task = submit(&service, "slow-2").await;
        let response = service.get(task["links"]["events"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        service.agendas.release();
        let text = crate::support::within(Duration::from_secs(20), "the stream ends", response.text()).await.unwrap();
        assert!(text.starts_with("event: status\nid: "), "{text}");
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.starts_with("event: done\n") && last.contains(r#""status":"COMPLETED""#), "{last}");
    }

    async fn a_cancel_is_told_apart_by_what_came_before(database: TestDatabase) {
        let service = Service::start(database).await;
        let task = submit(&service, "slow-3").await;
        let url = format!("/task/{}", id(&task));
        let (status, body) = service.json(service.get(&format!("{url}/result"))).await;
        assert_eq!((status, &body["type"]), (409, &"/problems/not-finished".into()));
        let (status, body) = service.json(service.request(Method::DELETE, &url)).await;
        assert_eq!((status, &body["status"]), (202, &"CANCELLED".into()));
        let (status, body) = service.json(service.request(Method::DELETE, &url)).await;
        assert_eq!((status, &body["status"]), (200, &"CANCELLED".into()));
        let (status, body) = service.json(service.get(&format!("{url}/result"))).await;
        assert_eq!((status, &body["type"]), (409, &"/problems/cancelled".into()));
        assert_eq!(service.database.number("SELECT COUNT(*) FROM audit WHERE action = 'task.cancel'").await, 1);

        let done = submit(&service, "8").await;
        service.finished(id(&done)).await;
        let (status, body) = service.json(service.request(Method::DELETE, &format!("/task/{}", id(&done)))).await;
        assert_eq!((status, &body["type"], &body["taskId"]), (409, &"/problems/already-finished".into(), &done["taskId"]));
        let (status, _) = service.json(service.request(Method::DELETE, "/task/0198c0de-0000-7000-8000-000000000000")).await;
        assert_eq!(status, 404);
    }

    async fn pages_of_a_list_neither_repeat_nor_miss(database: TestDatabase) {
        let service = Service::start(database).await;
        for n in 0..7 {
            service.json(service.post("/api/tasks").json(&json!({ "payload": { "n": n } }))).await;
        }
        let mut seen = Vec::new();
        let mut url = "/api/tasks?kind=demo&limit=3".to_owned();
        loop {
            let (status, page) = service.json(service.get(&url)).await;
            assert_eq!(status, 200, "{page}");
            seen.extend(page["items"].as_array().unwrap().iter().map(|task| id(task).to_owned()));
            // Rows that come in between are newer than every page to come.
            service.json(service.post("/api/tasks").json(&json!({ "payload": { "between": true } }))).await;
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            url = format!("/api/tasks?kind=demo&limit=3&cursor={cursor}");
        }
        let mut newest_first = seen.clone();
        newest_first.sort();
        newest_first.dedup();
        newest_first.reverse();
        assert_eq!((seen.len(), seen), (7, newest_first));
    }

    async fn one_instant_in_many_spellings_is_one_time(database: TestDatabase) {
        let service = Service::start(database).await;
        let spellings = [
            "2031-11-30T12:00:00Z", "2031-11-30t12:00:00z", "2031-11-30 12:00:00Z", "2031-11-30T15:00:00+03:00", "2031-11-30T07:00:00-05:00",
            "2031-11-30T12:00:00.000Z", "2031-11-30T12:00:00.000000Z", "2031-11-30T12:00:00.000000000Z",
        ];
        for (n, spelling) in spellings.iter().enumerate() {
            let body = json!({ "payload": { "n": n }, "runAt": spelling });
            let (status, task) = service.json(service.post("/api/tasks").json(&body)).await;
            assert_eq!((status, &task["nextAttemptAt"]), (202, &"2031-11-30T12:00:00Z".into()), "{spelling}: {task}");
        }
        let (_, none) = service.json(service.get("/api/tasks?from=2031-01-01T00:00:00Z")).await;
        assert_eq!(none["items"], json!([]), "from and to are about creation");
        let (_, all) = service.json(service.get("/api/tasks?to=2031-01-01T03:00:00%2B03:00&from=2020-01-01T00:00:00Z")).await;
        assert_eq!(all["items"].as_array().unwrap().len(), spellings.len());
    }

    async fn the_seeds_curl_example_works_as_written(database: TestDatabase) {
        let service = Service::configured(database, &[("ENGINE__RETRY_BASE", "10ms")]).await;
        let body = "{\n        \"payload\": \"{\\\"note\\\":\\\"демо ретраев\\\",\\\"failUntilAttempt\\\":3}\",\n        \"runAt\": \"2026-10-11T12:00:00Z\",\n        \"idempotencyKey\": \"order-42\"\n      }";
        let post = || service.post("/api/tasks").header("content-type", "application/json").body(body);
        let (status, task) = service.json(post()).await;
        assert_eq!((status, &task["kind"]), (202, &"demo".into()), "{task}");
        let done = service.finished(id(&task)).await;
        assert_eq!((&done["status"], &done["attempt"]), (&"COMPLETED".into(), &3.into()), "{done}");
        let (status, again) = service.json(post()).await;
        assert_eq!((status, &again["taskId"], &again["joined"]), (202, &task["taskId"], &true.into()));
    }

    async fn a_dead_letter_is_listed_and_replayed_once(database: TestDatabase) {
        let service = Service::configured(database, &[("ENGINE__RETRY_BASE", "5ms")]).await;
        let (_, task) = service.json(service.post("/api/tasks").json(&json!({ "payload": { "failUntilAttempt": 6 } }))).await;
        let failed = service.finished(id(&task)).await;
        assert_eq!((&failed["status"], &failed["attempt"]), (&"FAILED".into(), &5.into()));
        assert!(failed["failure"]["code"].is_string() && failed["errorMessage"].is_string(), "{failed}");
        let (_, letters) = service.json(service.get("/api/dead-letters")).await;
        let letter = &letters["items"][0];
        let keys: Vec<&str> = letter.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["deadLetterId", "taskId", "agendaId", "reason", "message", "attempts", "phase", "failedAt", "replayedAt", "dismissedAt"]);
        assert_eq!((&letter["taskId"], &letter["attempts"]), (&task["taskId"], &5.into()));
        let url = format!("/api/dead-letters/{}/replay", letter["deadLetterId"].as_str().unwrap());
        let (status, body) = service.json(service.post(&url).json(&json!({ "fromPhase": "DREAM" }))).await;
        assert_eq!((status, &body["errors"][0]["pointer"]), (400, &"/fromPhase".into()));
        let (status, queued) = service.json(service.post(&url)).await;
        assert_eq!((status, &queued["taskId"]), (202, &task["taskId"]), "{queued}");
        assert_eq!(service.finished(id(&task)).await["status"], "COMPLETED");
        let (status, body) = service.json(service.post(&url)).await;
        assert_eq!((status, &body["type"]), (409, &"/problems/already-replayed".into()));
        assert_eq!(service.post(&url.replace(letter["deadLetterId"].as_str().unwrap(), "0198c0de-0000-7000-8000-000000000000")).send().await.unwrap().status(), 404);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM audit WHERE action = 'dead-letter.replay'").await, 1);
    }
}
