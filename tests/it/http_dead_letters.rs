//! Dead letters by the dozen: replay what matches, dismiss, and the audit log that says who did it.

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use serde_json::{Value, json};
use std::time::Duration;

/// Dead letters: `unknown-…` fail for `agenda-not-found`, `unsigned-…` for `agenda-not-ready`; the tasks in the order given.
async fn fail(service: &Service, agendas: &[&str]) -> Vec<Value> {
    let mut failed = Vec::new();
    for agenda in agendas {
        let (_, task) = service.json(service.post("/task").json(&json!({ "agendaId": agenda }))).await;
        let task = service.finished(task["taskId"].as_str().expect("an id")).await;
        assert_eq!(task["status"], "FAILED");
        failed.push(task);
    }
    failed
}

async fn replay(service: &Service, body: Value) -> (u16, Value) {
    service.json(service.post("/api/dead-letters/replay").json(&body)).await
}

async fn open(service: &Service) -> Vec<Value> {
    let (status, letters) = service.json(service.get("/api/dead-letters?open=true&limit=200")).await;
    assert_eq!(status, 200, "{letters}");
    letters["items"].as_array().expect("a list").clone()
}

on_both_databases! {
    async fn what_matches_is_counted_then_replayed_and_everything_else_stays(database: TestDatabase) {
        let service = Service::start(database).await;
        let tasks = fail(&service, &["unknown-1", "unknown-2", "unsigned-1", "unsigned-2", "unsigned-3"]).await;
        for (why, body) in [("nothing", json!({})), ("no filter", json!({ "dryRun": true })), ("all is false", json!({ "all": false })), ("a made-up reason", json!({ "reason": "dream" }))] {
            let (status, problem) = replay(&service, body).await;
            assert_eq!((status, &problem["type"]), (400, &"/problems/invalid-request".into()), "{why}: {problem}");
        }
        let (status, counted) = replay(&service, json!({ "reason": "agenda-not-ready", "dryRun": true })).await;
        assert_eq!((status, counted), (200, json!({ "dryRun": true, "matching": 3, "replayed": 0, "skipped": [], "nextCursor": null })));
        assert_eq!(open(&service).await.len(), 5, "nothing was done");

        // In two calls: the first says where to go on.
        let (_, first) = replay(&service, json!({ "reason": "agenda-not-ready", "limit": 2 })).await;
        assert_eq!((&first["replayed"], &first["skipped"]), (&2.into(), &json!([])), "{first}");
        let (_, second) = replay(&service, json!({ "reason": "agenda-not-ready", "limit": 2, "cursor": first["nextCursor"] })).await;
        assert_eq!((&second["replayed"], &second["nextCursor"]), (&1.into(), &Value::Null), "{second}");
        for task in &tasks[2..] {
            let id = task["taskId"].as_str().expect("an id");
            eventually(Duration::from_secs(20), "it failed again, under the same id", async || {
                let (_, shown) = service.json(service.get(&format!("/api/tasks/{id}"))).await;
                shown["status"] == "FAILED" && shown["attempts"].as_array().is_some_and(|attempts| attempts.len() == 2)
            })
            .await;
        }
        let letters = open(&service).await;
        assert_eq!(letters.len(), 5, "three closed, three new");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM dead_letter WHERE replayed_us IS NOT NULL").await, 3);
        let (_, one) = replay(&service, json!({ "agendaId": "unknown-2" })).await;
        assert_eq!((&one["matching"], &one["replayed"]), (&1.into(), &1.into()));
        service.finished(tasks[1]["taskId"].as_str().expect("an id")).await;
        let (_, none) = replay(&service, json!({ "all": true, "to": "2000-01-01T00:00:00Z" })).await;
        assert_eq!((&none["matching"], &none["replayed"]), (&0.into(), &0.into()), "a filter holds with all, too");
        let (_, all) = replay(&service, json!({ "all": true })).await;
        assert_eq!((&all["matching"], &all["replayed"], &all["nextCursor"]), (&5.into(), &5.into(), &Value::Null));
    }

    async fn one_that_cannot_be_replayed_is_named_and_stands_in_nobodys_way(database: TestDatabase) {
        let service = Service::start(database).await;
        let failed = fail(&service, &["unsigned-1", "unsigned-1", "unsigned-2"]).await;
        let older = open(&service).await.into_iter().find(|letter| letter["taskId"] == failed[0]["taskId"]).expect("its letter");
        // Of two of one agenda the newer goes, and it is active while the older is looked at: claiming is paused.
        assert_eq!(service.post("/api/engine/pause").send().await.unwrap().status(), 200);
        let (status, summary) = replay(&service, json!({ "all": true })).await;
        assert_eq!((status, &summary["replayed"]), (200, &2.into()), "{summary}");
        assert_eq!(summary["skipped"], json!([{ "id": older["deadLetterId"], "reason": "agenda-busy" }]));
        let (status, busy) = service.json(service.post(&format!("/api/dead-letters/{}/replay", older["deadLetterId"].as_str().unwrap()))).await;
        assert_eq!((status, &busy["type"], &busy["taskId"]), (409, &"/problems/agenda-busy".into(), &failed[1]["taskId"]));
        assert_eq!(open(&service).await, [older]);
    }

    async fn a_dismissed_one_is_closed_and_may_still_be_replayed_by_its_id(database: TestDatabase) {
        let service = Service::start(database).await;
        let failed = fail(&service, &["unsigned-1"]).await.remove(0);
        let id = open(&service).await[0]["deadLetterId"].as_str().expect("an id").to_owned();
        let dismiss = || service.json(service.post(&format!("/api/dead-letters/{id}/dismiss")));
        let (status, first) = dismiss().await;
        assert_eq!((status, first["dismissedAt"].is_string(), &first["replayedAt"]), (200, true, &Value::Null), "{first}");
        assert_eq!(dismiss().await, (200, first), "twice is once");
        assert_eq!(open(&service).await, [] as [Value; 0]);
        assert_eq!(service.status_of(failed["taskId"].as_str().unwrap()).await["status"], "FAILED");
        let (_, counted) = replay(&service, json!({ "all": true, "dryRun": true })).await;
        assert_eq!(counted["matching"], 0, "what is dismissed is left alone");
        let (status, queued) = service.json(service.post(&format!("/api/dead-letters/{id}/replay"))).await;
        assert_eq!((status, &queued["taskId"]), (202, &failed["taskId"]), "somebody changed their mind");
        let (status, problem) = dismiss().await;
        assert_eq!((status, &problem["type"]), (409, &"/problems/already-replayed".into()));
        let unknown = service.post("/api/dead-letters/0198c0de-0000-7000-8000-000000000000/dismiss").send().await.unwrap();
        assert_eq!(unknown.status(), 404);
        assert_eq!(service.database.number("SELECT COUNT(*) FROM audit WHERE action = 'dead-letter.dismiss'").await, 1);
    }

    async fn what_is_done_by_hand_is_on_record_with_who_did_it(database: TestDatabase) {
        let service = Service::start(database).await;
        fail(&service, &["unsigned-1", "unsigned-2"]).await;
        let response = service.post("/api/dead-letters/replay").header("x-caller", "night-shift").json(&json!({ "all": true, "fromPhase": "MERGE" })).send().await.unwrap();
        let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let (_, task) = service.json(service.post("/task").json(&json!({ "agendaId": "slow-1" }))).await;
        let cancel = service.request(reqwest::Method::DELETE, &format!("/task/{}", task["taskId"].as_str().unwrap()));
        assert_eq!(service.json(cancel.header("x-caller", "day-shift")).await.0, 202);
        let list = async |query: &str| service.json(service.get(&format!("/api/audit?{query}"))).await.1;
        let all = list("").await;
        let actions: Vec<&str> = all["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["task.cancel", "dead-letter.replay", "dead-letter.replay"], "newest first");
        let replayed = list("actor=night-shift").await;
        for entry in replayed["items"].as_array().unwrap() {
            let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["auditId", "at", "actor", "address", "action", "object", "detail", "requestId"]);
            assert_eq!((&entry["requestId"], &entry["detail"], &entry["address"]), (&json!(request_id), &json!("from MERGE"), &json!("127.0.0.1")));
        }
        assert_eq!(replayed["items"].as_array().unwrap().len(), 2);
        let object = task["taskId"].as_str().unwrap();
        assert_eq!(list(&format!("object={object}&action=task.cancel")).await["items"][0]["actor"], "day-shift");
        let page = list("limit=2").await;
        let rest = list(&format!("limit=2&cursor={}", page["nextCursor"].as_str().unwrap())).await;
        assert_eq!((rest["items"].as_array().unwrap().len(), &rest["nextCursor"]), (1, &Value::Null));
        assert_eq!(list("to=2000-01-01T00:00:00Z").await["items"], json!([]));
        assert_eq!(service.json(service.get("/api/audit?action=made.up")).await.0, 400);
        assert_eq!(service.json(service.get("/api/audit?from=2026-01-01T00:00:00")).await.0, 400, "without an offset");
    }
}
