//! PostgreSQL and NATS over TLS, with certificates of an authority that nobody knows but the operator.

use crate::support::{Process, TestDatabase, certificates::Certificates, eventually, nats::Nats, postgres::Cluster, process};
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_the_operators_own_is_trusted_once_it_is_named() {
    let certificates = Certificates::make();
    let paths = [certificates.authority(), certificates.certificate(), certificates.key()].map(|path| path.display().to_string());
    let [authority, certificate, key] = paths.each_ref().map(String::as_str);
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster of our own");
    let plain = TestDatabase::postgres_on(&cluster.url()).await;
    cluster.require_tls(&certificates.certificate(), &certificates.key());
    let nats = Nats::start_with(&["--tls", "--tlscert", certificate, "--tlskey", key]).await;
    let by_tls = nats.url().replace("nats://", "tls://");

    // An unknown authority is a refusal that says so, not a connection all the same.
    let unknown = plain.by_way_of(format!("{}?sslmode=verify-full", plain.url));
    let refused = process::run(&["migrate"], &[("PROTOCOL_BRIDGE__DATABASE__URL", &unknown.url)], unknown.data_dir.path());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("certificate") && said.contains("UnknownIssuer"), "{said}");

    let database = plain.by_way_of(format!("{}?sslmode=verify-full&sslrootcert={authority}", plain.url));
    let away = "starting without NATS; tasks are taken from the database until it is there";
    let mut environment = vec![("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", by_tls.as_str())];
    let stranger = Process::serve(&database, &environment).await;
    assert!(stranger.events(away)[0]["error"].as_str().is_some_and(|error| error.contains("doctor")), "{}", stranger.log());
    drop(stranger);
    environment.push(("PROTOCOL_BRIDGE__DATABASE__URL", &database.url));
    let doctor = process::run(&["doctor", "--json"], &environment, database.data_dir.path());
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{found}");
    assert!(found.contains("UnknownIssuer"), "{found}");

    let transport = [("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", by_tls.as_str()), ("SSL_CERT_FILE", authority)];
    let process = Process::serve(&database, &transport).await;
    assert_eq!(process.events(away).len(), 0, "{}", process.log());
    let (status, task) = process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
    assert_eq!(status, 202, "{task}");
    let at = format!("/api/tasks/{}", task["taskId"].as_str().expect("an id"));
    eventually(LIMIT, "it completes", async || process.json(&at).await["status"] == "COMPLETED").await;
    let metrics = process.client.get(format!("{}/metrics", process.url)).send().await.expect("an answer").text().await.expect("a text");
    assert!(metrics.contains("protocol_bridge_transport_up 1"), "it is NATS that carries the messages");
    assert!(metrics.contains("protocol_bridge_wakeup_listener_up 1"), "LISTEN goes by TLS, too");
}
