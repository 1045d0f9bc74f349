//! Whatever NATS loses, no task is lost, and none waits for NATS.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Script, Setup, demo, metric, recorder},
    support::{
        TestDatabase, eventually,
        nats::{Nats, names},
        postgres::Cluster,
    },
};
use protocol_bridge::{
    base::shutdown::Shutdown,
    domain::{
        ids::TaskId,
        task::{Kind, Status},
    },
    engine::{Decision, Done},
};
use std::time::{Duration, Instant};

async fn submit(node: &Node, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(node.submit(demo("{}")).await.id);
    }
    ids
}

async fn all_complete(node: &Node, ids: &[TaskId]) {
    for id in ids {
        assert_eq!(node.reaches(*id, Status::Completed).await.claim_no, 1);
    }
}

/// From submitted to started.
async fn pick_up(node: &Node) -> Duration {
    let task = node.submit(demo("{}")).await;
    let task = node.reaches(task.id, Status::Completed).await;
    task.started_at.unwrap().since(task.created_at)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_stream_and_a_deleted_one_lose_nothing() {
    recorder();
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (writer, ticks) = Setup::new().with_transport(nats.transport(&shutdown).await).by_hand(&database, &db);
    let ids = submit(&writer, 30).await;
    ticks.relay().await.unwrap();
    ticks.mark().await;
    assert_eq!(nats.stored().await, 30);
    assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0);
    nats.stream().await.purge().await.unwrap();
    let node = setup.start(&database, &db);
    all_complete(&node, &ids).await;

    nats.context().await.delete_stream(names().stream).await.unwrap();
    let ids = submit(&node, 30).await;
    all_complete(&node, &ids).await;
    eventually(LIMIT, "the stream is made again", async || nats.stored().await >= 0 && metric("transport_up") == 1).await;
    nats.stream().await.delete_consumer(&names().consumer).await.unwrap();
    let ids = submit(&node, 30).await;
    all_complete(&node, &ids).await;
    let made_again = async || nats.stream().await.consumer_info(names().consumer).await.is_ok() && metric("transport_up") == 1;
    eventually(LIMIT, "the consumer is made again", made_again).await;
    node.kill().await;
    shutdown.force();
}

/// The NATS half of case Q-10 as well: after every loss the start latency is what it was.
#[tokio::test(flavor = "multi_thread")]
async fn nats_killed_restarted_emptied_and_frozen_loses_nothing() {
    recorder();
    let (database, mut nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    all_complete(&node, &submit(&node, 10).await).await;
    assert_eq!(metric("transport_up"), 1);
    for lost in [false, true] {
        nats.kill();
        eventually(LIMIT, "it is noticed", async || metric("transport_up") == 0).await;
        let ids = submit(&node, 20).await;
        all_complete(&node, &ids).await;
        if lost {
            nats.forget();
        }
        nats.start_again().await;
        eventually(LIMIT, "it is used again", async || metric("transport_up") == 1).await;
        let before = metric(r#"relay_published_total{transport="jetstream"}"#);
        // The first may still be picked up by the look into the table.
        eventually(LIMIT, "tasks start at once again", async || pick_up(&node).await < Duration::from_millis(500)).await;
        assert!(metric(r#"relay_published_total{transport="jetstream"}"#) > before);
    }
    nats.freeze();
    let ids = submit(&node, 20).await;
    all_complete(&node, &ids).await;
    eventually(LIMIT, "silence is noticed", async || metric("transport_up") == 0).await;
    nats.thaw();
    eventually(LIMIT, "it is used again", async || metric("transport_up") == 1).await;
    eventually(LIMIT, "tasks start at once again", async || pick_up(&node).await < Duration::from_millis(500)).await;
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM attempt WHERE claim_no <> 1").await, 0, "each ran once");
    node.kill().await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nats_at_the_start_tasks_run_and_it_is_used_when_it_comes() {
    recorder();
    let (database, mut nats, shutdown) = (TestDatabase::postgres().await, Nats::absent(), Shutdown::new());
    let started = Instant::now();
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    assert!(started.elapsed() < 10 * SECOND, "the start does not wait for it");
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    assert_eq!(metric("transport_up"), 0);
    all_complete(&node, &submit(&node, 20).await).await;
    nats.start_again().await;
    eventually(LIMIT, "it is used", async || metric("transport_up") == 1).await;
    all_complete(&node, &submit(&node, 20).await).await;
    assert!(metric(r#"relay_published_total{transport="jetstream"}"#) > 0);
    node.kill().await;
    shutdown.force();
}

/// Case O-08 (a): the database is away while messages are in flight; nothing is burnt, nothing becomes a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_with_messages_in_flight_costs_nothing() {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.expect("a cluster");
    let database = TestDatabase::postgres_on(&cluster.url()).await;
    let (nats, shutdown) = (Nats::start().await, Shutdown::new());
    let work = Script::new(|_| async { Decision::Done(Done::default()) });
    // A claim whose outcome is unknown is looked up for as long as its lease would have lasted.
    let short = |config: &mut protocol_bridge::base::config::Engine| (config.lease, config.heartbeat) = (2 * SECOND, SECOND / 2);
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await).with_executor(Kind::Demo, work).with_config(short);
    let db = setup.open(&database).await;
    let (writer, ticks) = Setup::new().with_transport(nats.transport(&shutdown).await).by_hand(&database, &db);
    let ids = submit(&writer, 100).await;
    ticks.relay().await.unwrap();
    ticks.mark().await;
    assert_eq!(nats.stored().await, 100);
    let cluster = tokio::task::spawn_blocking(move || {
        cluster.stop_server();
        cluster
    })
    .await
    .expect("stopped");
    let node = setup.start(&database, &db);
    eventually(LIMIT, "messages were tried, and put back", async || nats.consumer().await.num_redelivered > 0).await;
    assert_eq!(nats.stored().await, 100, "none is acknowledged without its claim");
    let cluster = tokio::task::spawn_blocking(move || {
        cluster.start_server();
        cluster
    })
    .await
    .expect("started");
    eventually(2 * LIMIT, "all complete", async || {
        database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await == i64::try_from(ids.len()).expect("few")
    })
    .await;
    assert_eq!(database.number("SELECT COUNT(*) FROM dead_letter").await, 0);
    assert_eq!(database.number("SELECT COUNT(*) FROM attempt").await, 100, "each ran once");
    eventually(2 * LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    node.kill().await;
    shutdown.force();
    db.close().await;
    drop(cluster);
}
