//! The assembled service on both databases: it starts, works, drains, and leaves its folder to the next.

use crate::support::{TestDatabase, TestServer, eventually, on_both_databases, server};
use protocol_bridge::app::{App, Ended, StartError};
use std::time::Duration;

on_both_databases! {
    async fn it_serves_drains_and_starts_again(database: TestDatabase) {
        for round in 1..=2 {
            let server = TestServer::start(&database, |_| {}).await;
            assert_eq!(server.get("/readyz").send().await.expect("an answer").status(), 200);
            let task: serde_json::Value =
                server::json(server.post("/api/tasks").json(&serde_json::json!({"payload": {"note": round}})).send().await.expect("an answer")).await;
            let path = format!("/api/tasks/{}", task["taskId"].as_str().expect("an id"));
            eventually(Duration::from_secs(30), "the demo task completes", async || server.json(&path).await["status"] == "COMPLETED").await;
            assert!(server.metric("tasks_finished_total{kind=\"demo\",outcome=\"completed\"}").await >= 1.0);
            let metrics = server.get("/metrics").send().await.expect("an answer").text().await.expect("a text");
            for series in ["build_info{version=", "disk_free_bytes ", "db_pool_in_use ", "wakeup_listener_up "] {
                assert!(metrics.lines().any(|line| line.starts_with(&format!("protocol_bridge_{series}"))), "no {series} in\n{metrics}");
            }
            assert_eq!(server.app.drain(false).await, Ended::Drained);
            assert!(server.get("/livez").send().await.is_err(), "nothing listens any more");
        }
    }

    async fn a_schema_that_is_not_there_is_refused_when_migrating_is_off(database: TestDatabase) {
        let mut config = server::config(&database);
        config.database.migrate = protocol_bridge::base::config::Migrate::Off;
        let refused = App::start(config).await.expect_err("there is no schema");
        assert!(matches!(refused, StartError::Database(_)), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_part_that_cannot_be_had_is_named() {
    let database = TestDatabase::sqlite().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut config = server::config(&database);
    config.http.listen = taken.local_addr().expect("its address");
    let refused = App::start(config).await.expect_err("the port is taken").to_string();
    assert!(refused.ends_with("is taken by another program; stop it or choose --listen"), "{refused}");

    let mut config = server::config(&database);
    config.database.url = "postgres://nobody@127.0.0.1:1/none".into();
    assert!(matches!(App::start(config).await, Err(StartError::Database(_))));

    let mut config = server::config(&database);
    let file = database.data_dir.path().join("file");
    std::fs::write(&file, "").expect("written");
    config.documents.store = file.display().to_string();
    assert!(matches!(App::start(config).await, Err(StartError::Documents(_))));
}
