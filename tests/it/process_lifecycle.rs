//! Start, signals and restart of the real program.

use crate::support::{Process, eventually};
use reqwest::StatusCode;
use std::time::{Duration, Instant};

const QUICK: [(&str, &str); 1] = [("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "1s")];

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_announces_then_drains_and_ends_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(&[], &QUICK, folder.path()).await;
    let signalled = Instant::now();
    process.terminate();
    let (client, url) = (process.client.clone(), process.url.clone());
    eventually(Duration::from_secs(1), "/readyz is red while everything is still served", async || {
        client.get(format!("{url}/readyz")).send().await.is_ok_and(|answer| answer.status() == StatusCode::SERVICE_UNAVAILABLE)
    })
    .await;
    let served = client.get(format!("{url}/livez")).send().await.expect("still served");
    assert_eq!(served.status(), StatusCode::OK);
    assert_eq!(served.headers()["connection"], "close");
    let status = process.ended(Duration::from_secs(30)).await;
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(signalled.elapsed() >= Duration::from_secs(1), "it served on for the announced time");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigint_skips_the_announcement() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(&[], &[("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "1h")], folder.path()).await;
    process.interrupt();
    let status = process.ended(Duration::from_secs(30)).await;
    assert_eq!(status.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(&[], &[("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "1h")], folder.path()).await;
    process.terminate();
    eventually(Duration::from_secs(10), "the first signal was taken", async || process.log().contains("draining")).await;
    process.terminate();
    let status = process.ended(Duration::from_secs(10)).await;
    assert_eq!(status.code(), Some(1), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_folder_waits_its_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = Process::start(&[], &[("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s")], folder.path()).await;
    let second = Process::launch(&[], &[], folder.path());
    eventually(Duration::from_secs(30), "the second says that it waits", async || second.log().contains("waiting until it has ended"))
        .await;
    assert!(second.events("listening").is_empty());
    first.terminate();
    first.ended(Duration::from_secs(30)).await;
    eventually(Duration::from_secs(30), "the second serves", async || !second.events("listening").is_empty()).await;
}
