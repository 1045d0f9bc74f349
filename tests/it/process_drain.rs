//! Case H-08: nothing that is open keeps the process from ending, and who waits is told which task goes on.

use crate::support::{Process, eventually, within};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_with_waiters_idle_connections_and_half_a_request_open() {
    use tokio::{io::AsyncWriteExt as _, net::TcpStream};
    let folder = tempfile::tempdir().expect("a folder");
    let environment = [
        ("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s"),
        ("PROTOCOL_BRIDGE__SHUTDOWN__GRACE", "1s"),
        ("PROTOCOL_BRIDGE__SHUTDOWN__WAITER_GRACE", "1s"),
    ];
    let mut process = Process::start(&[], &environment, folder.path()).await;
    let address = process.url.strip_prefix("http://").expect("our own URL").to_owned();
    let _idle = TcpStream::connect(&address).await.expect("a connection");
    let mut half = TcpStream::connect(&address).await.expect("a connection");
    half.write_all(b"POST /task HTTP/1.1\r\nHost: ").await.expect("half a request");
    assert_eq!(process.post("/task", &serde_json::json!({ "agendaId": "slow-council" })).await.0, 202);
    let (client, url) = (process.client.clone(), process.url.clone());
    eventually(Duration::from_secs(20), "the task runs", async || {
        let tasks =
            client.get(format!("{url}/api/tasks?status=IN_PROGRESS")).send().await.expect("an answer").text().await.expect("a text");
        tasks.contains("slow-council")
    })
    .await;

    let tasks: serde_json::Value =
        client.get(format!("{url}/api/tasks?status=IN_PROGRESS")).send().await.expect("an answer").json().await.expect("a list");
    let task = tasks["items"][0]["taskId"].as_str().expect("an id").to_owned();
    let revision = client.get(format!("{url}/task/{task}/status")).send().await.expect("an answer").headers()["etag"].clone();
    let poll = client.get(format!("{url}/task/{task}/status")).header("prefer", "wait=50").header("if-none-match", revision);
    let poll = tokio::spawn(poll.send());
    let mut stream = client.get(format!("{url}/task/{task}/events")).send().await.expect("a stream");
    assert!(stream.chunk().await.expect("open").is_some(), "it says how the task stands");
    // goes with v1: begin
    let waiter = tokio::spawn(client.post(format!("{url}/api/v1/protocol/merge/byAgenda/slow-council")).send());
    eventually(Duration::from_secs(20), "the v1 call waits", async || {
        let text = client.get(format!("{url}/metrics")).send().await.expect("an answer").text().await.expect("a text");
        text.contains("\nprotocol_bridge_legacy_waiters 1\n")
    })
    .await;
    // goes with v1: end

    process.terminate();
    // goes with v1: begin
    let answer = within(Duration::from_secs(20), "the waiter is answered", waiter).await.expect("no panic").expect("an answer");
    assert_eq!(answer.status(), reqwest::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "1");
    let body: serde_json::Value = answer.json().await.expect("a problem");
    assert_eq!(body["taskId"], task.as_str(), "{body}");
    // goes with v1: end
    let polled = within(Duration::from_secs(20), "the long poll is answered", poll).await.expect("no panic").expect("an answer");
    assert!([200, 304, 503].contains(&polled.status().as_u16()), "{}", polled.status());
    let rest = within(Duration::from_secs(20), "the event stream ends", stream.text()).await;
    assert!(rest.is_ok(), "it ends in order: {rest:?}");
    let status = process.ended(Duration::from_secs(30)).await;
    assert_eq!(status.code(), Some(0), "{}", process.log());

    // The attempt was given back: the next process runs the task, and its first attempt is still the first.
    let process = Process::start(&[], &[], folder.path()).await;
    let status = format!("{}/task/{task}/status", process.url);
    eventually(Duration::from_mins(2), "the task completes after the restart", async || {
        let task: serde_json::Value = process.client.get(&status).send().await.expect("an answer").json().await.expect("a task");
        assert_eq!(task["attempt"].as_u64().map(|attempt| attempt <= 1), Some(true), "{task}");
        task["status"] == "COMPLETED"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_signals_one_after_the_other_damage_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let short = [("PROTOCOL_BRIDGE__ENGINE__LEASE", "2s"), ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "600ms")];
    let announce = ("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s");
    let mut process = Process::start(&[], &[short[0], short[1], announce], folder.path()).await;
    let mut tasks = Vec::new();
    for agenda in ["slow-council", "allotments-2026", "large-council"] {
        let (status, task) = process.post("/task", &serde_json::json!({ "agendaId": agenda })).await;
        assert_eq!(status, 202, "{task}");
        tasks.push(task["links"]["status"].as_str().expect("a link").to_owned());
    }
    process.terminate();
    eventually(Duration::from_secs(10), "the first signal was taken", async || process.log().contains("draining")).await;
    process.terminate();
    process.ended(Duration::from_secs(10)).await;

    // What was running is held by nobody until its lease runs out.
    let process = Process::start(&[], &short, folder.path()).await;
    for task in &tasks {
        eventually(Duration::from_mins(2), "every task completes", async || process.json(task).await["status"] == "COMPLETED").await;
    }
    let protocols = process.json("/protocol?agendaId=large-council").await;
    assert_eq!(protocols["items"].as_array().map(Vec::len), Some(1), "{protocols}");
}
