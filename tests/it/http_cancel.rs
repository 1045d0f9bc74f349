//! Case Q-07: cancels at random moments, as callers see them; and the counts that the API, the database and the metrics give.

use crate::{
    engine_world::metric,
    support::{
        Service, TestDatabase, eventually, on_both_databases,
        reconcile::{Told, reconcile},
    },
};
use futures::{StreamExt as _, stream};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const TASKS: u64 = 500;

async fn count_in_the_api(service: &Service, status: &str) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let (_, page) = service.json(service.get(&format!("/api/tasks?status={status}&limit=200&cursor={cursor}"))).await;
        count += page["items"].as_array().expect("a list").len();
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return count,
        }
    }
}

/// One task of 200 ms, cancelled after 0 to 400 ms, and each sixteenth once it has ended, however slow the machine is; answers its id and how it ended.
async fn one(service: &Service, number: u64) -> (String, String) {
    let (status, task) =
        service.json(service.post("/api/tasks").json(&json!({ "kind": "demo", "payload": { "sleepMs": 200, "number": number } }))).await;
    assert_eq!(status, 202, "{task}");
    let id = task["taskId"].as_str().expect("an id").to_owned();
    if number.is_multiple_of(16) {
        service.finished(&id).await;
    } else {
        let moment = StdRng::seed_from_u64(number).random_range(0..400);
        tokio::time::sleep(Duration::from_millis(moment)).await;
    }
    let cancel = || service.json(service.request(Method::DELETE, &format!("/task/{id}")));
    let (status, answer) = cancel().await;
    let end = match status {
        202 => "CANCELLED",
        409 => {
            assert_eq!(answer["type"], "/problems/already-finished", "{answer}");
            "COMPLETED"
        }
        other => panic!("{other}: {answer}"),
    };
    for _ in 0..3 {
        assert_eq!(service.status_of(&id).await["status"], end, "{id} left its end");
    }
    let (status, _) = cancel().await;
    assert_eq!(status, if end == "CANCELLED" { 200 } else { 409 }, "asked again, the same");
    let result = service.get(&format!("/task/{id}/result")).send().await.expect("an answer");
    if end == "CANCELLED" {
        assert_eq!(result.status(), 409, "there is nothing to be had of it");
    }
    (id, end.to_owned())
}

on_both_databases! {
    async fn five_hundred_tasks_cancelled_at_random_moments_each_have_one_end(database: TestDatabase) {
        let service = Service::configured(database, &[("ENGINE__MAX_RUNNING", "512")]).await;
        let ends: Vec<(String, String)> = stream::iter(0..TASKS).map(|number| one(&service, number)).buffer_unordered(64).collect().await;
        let count = |status: &str| ends.iter().filter(|(_, end)| end == status).count();
        let (completed, cancelled) = (count("COMPLETED"), count("CANCELLED"));
        assert!(completed > 0 && cancelled > 0 && completed + cancelled == 500, "{completed} + {cancelled}");
        for (id, end) in &ends {
            assert_eq!(service.status_of(id).await["status"], **end);
        }
        assert_eq!((count_in_the_api(&service, "COMPLETED").await, count_in_the_api(&service, "CANCELLED").await), (completed, cancelled));
        eventually(Duration::from_secs(20), "every attempt has ended", async || {
            service.database.number("SELECT COUNT(*) FROM attempt WHERE ended_us IS NULL").await == 0
        })
        .await;
        for (status, number) in [("completed", completed), ("cancelled", cancelled)] {
            let series = format!("tasks_finished_total{{kind=\"demo\",outcome=\"{status}\"}}");
            assert_eq!(metric(&series), i64::try_from(number).expect("few"), "{series}");
        }
        assert_eq!(metric("task_retries_total{kind=\"demo\"}"), 0);
        let told = Told {
            accepted: ends.iter().map(|(id, _)| id.clone()).collect(),
            cancelled: ends.iter().filter(|(_, end)| end == "CANCELLED").map(|(id, _)| id.clone()).collect(),
            ..Told::default()
        };
        reconcile(&service.database, &told).await;
    }

    async fn a_cancelled_protocol_task_leaves_no_protocol_and_one_event(database: TestDatabase) {
        let service = Service::start(database).await;
        let (_, task) = service.json(service.post("/task").json(&json!({ "agendaId": "slow-1" }))).await;
        let id = task["taskId"].as_str().expect("an id");
        eventually(Duration::from_secs(20), "it collects", async || service.status_of(id).await["phase"] == "COLLECT").await;
        assert_eq!(service.json(service.request(Method::DELETE, &format!("/task/{id}"))).await.0, 202);
        service.agendas.release();
        eventually(Duration::from_secs(20), "its attempt has ended", async || {
            service.database.number("SELECT COUNT(*) FROM attempt WHERE ended_us IS NULL").await == 0
        })
        .await;
        let (_, protocols) = service.json(service.get("/protocol?agendaId=slow-1")).await;
        assert_eq!(protocols["items"], Value::Array(Vec::new()));
        let told = Told { accepted: [id.to_owned()].into(), cancelled: [id.to_owned()].into(), ..Told::default() };
        reconcile(&service.database, &told).await;
    }
}
