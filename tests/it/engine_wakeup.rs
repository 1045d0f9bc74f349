//! Hints between nodes on PostgreSQL: they are quick, they come back after every kind of loss, and nothing depends on them.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Setup, demo, metric, recorder},
    support::{TestDatabase, eventually, postgres::Cluster, postgres_proxy::PostgresProxy},
};
use protocol_bridge::{
    domain::task::Status,
    engine::{WaitFor, Waited},
};
use std::time::Duration;

/// No test here lasts so long: what arrives earlier was hinted at.
const POLL: Duration = Duration::from_mins(5);

async fn node(database: &TestDatabase) -> Node {
    let mut setup = Setup::new();
    setup.poll_interval = POLL;
    let db = setup.open(database).await;
    setup.start(database, &db)
}

/// Takes work in and waits, and does none itself.
async fn watcher(database: &TestDatabase) -> Node {
    let mut setup = Setup::new();
    setup.poll_interval = POLL;
    setup.executors.clear();
    let db = setup.open(database).await;
    setup.start(database, &db)
}

async fn listeners(database: &TestDatabase) -> i64 {
    let listening =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'protocol-bridge listener'";
    database.number(listening).await
}

async fn both_listen(database: &TestDatabase) {
    eventually(LIMIT, "both listen", || async { listeners(database).await == 2 }).await;
    // Since when they listen is not seen from outside; a second look may be needed.
    eventually(LIMIT, "the metric says so", || async { metric("wakeup_listener_up") == 1 }).await;
}

/// How long after the finish on one node the other knew it.
async fn told_after(worker: &Node, watcher: &Node) -> Duration {
    let task = worker.submit(demo(r#"{"sleepMs":50}"#)).await;
    let deadline = watcher.clock.monotonic() + LIMIT;
    match watcher.engine.hub().wait(task.id, WaitFor::Finish, deadline).await.expect("an answer") {
        Waited::Reached(task) => {
            assert_eq!(task.status, Status::Completed);
            watcher.clock.now().since(task.finished_at.expect("it is finished"))
        }
        other => panic!("no hint has come: {other:?}"),
    }
}

/// At least one finish gets through; hints that are lost while the listeners find each other again are nobody's promise.
async fn hints_are_back(worker: &Node, watcher: &Node) {
    eventually(LIMIT, "hints arrive", || async {
        let task = worker.submit(demo(r#"{"sleepMs":50}"#)).await;
        let deadline = watcher.clock.monotonic() + SECOND;
        matches!(watcher.engine.hub().wait(task.id, WaitFor::Finish, deadline).await, Ok(Waited::Reached(_)))
    })
    .await;
    told_after(worker, watcher).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finish_is_known_on_another_node_at_once() {
    recorder();
    let database = TestDatabase::postgres().await;
    let (worker, watcher) = (node(&database).await, watcher(&database).await);
    both_listen(&database).await;
    told_after(&worker, &watcher).await;
    let mut took = Vec::new();
    for _ in 0..50 {
        took.push(told_after(&worker, &watcher).await);
    }
    took.sort();
    assert!(took[25] < Duration::from_millis(250), "{took:?}");
    worker.kill().await;
    watcher.kill().await;
}

/// Every connection is ended by the server; the server is started again; the network swallows everything for longer than the probe waits.
#[tokio::test(flavor = "multi_thread")]
async fn hints_come_back_after_every_kind_of_loss() {
    recorder();
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster of our own");
    let database = TestDatabase::postgres_on(&cluster.url()).await;
    let proxy = PostgresProxy::start(&database.url).await;
    let worker = node(&database).await;
    let watcher = watcher(&database.by_way_of(proxy.url(&database.url))).await;
    both_listen(&database).await;
    told_after(&worker, &watcher).await;

    database
        .execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    hints_are_back(&worker, &watcher).await;

    cluster.stop_server();
    eventually(LIMIT, "the metric says that nobody listens", || async { metric("wakeup_listener_up") == 0 }).await;
    cluster.start_server();
    hints_are_back(&worker, &watcher).await;
    both_listen(&database).await;

    proxy.black_hole();
    eventually(LIMIT, "a probe finds the dead connection", || async { metric("wakeup_listener_up") == 0 }).await;
    proxy.lift();
    hints_are_back(&worker, &watcher).await;
    assert_eq!(metric("wakeup_listener_up"), 1);
    worker.kill().await;
    watcher.kill().await;
}
