//! What keeps the engine going: loops that panic, kinds that nobody here runs, gauges.

use crate::{
    engine_world::{LIMIT, SECOND, Setup, demo, metric, protocol, recorder},
    support::{TestDatabase, eventually, on_both_databases, within},
};
use futures::{FutureExt as _, future::BoxFuture};
use protocol_bridge::{
    domain::task::{Kind, Status},
    engine::transport::{Delivery, Local, SendError, Transport},
    store::outbox::Outgoing,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// A local transport whose first receives panic.
#[derive(Debug)]
struct Panicking {
    left: AtomicU32,
    local: Local,
}

impl Panicking {
    fn times(times: u32) -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(times), local: Local::new(8) })
    }
}

impl Transport for Panicking {
    fn name(&self) -> &'static str {
        "local"
    }

    fn room(&self) -> usize {
        self.local.room()
    }

    fn has_room(&self) -> BoxFuture<'_, ()> {
        self.local.has_room()
    }

    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        self.local.send(messages)
    }

    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>> {
        let panics = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!panics, "on purpose");
        self.local.receive(limit).boxed()
    }
}

on_both_databases! {
    async fn a_loop_that_panics_is_started_again_and_three_times_in_a_minute_ends_the_process(database: TestDatabase) {
        recorder();
        let setup = Setup::new().with_transport(Panicking::times(2));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(demo("{}")).await;
        node.reaches(task.id, Status::Completed).await;
        assert_eq!(node.shutdown.failed(), None);
        assert_eq!(metric("loop_panics_total"), 2);
        node.kill().await;
        let node = Setup::new().with_transport(Panicking::times(3)).start(&database, &db);
        within(LIMIT, "the process is told to end", node.shutdown.hard().cancelled()).await;
        assert_eq!(node.shutdown.failed(), Some("consumer"));
        within(LIMIT, "everything ends", node.shutdown.finished()).await;
    }

    async fn a_kind_without_an_executor_here_is_left_to_a_node_that_has_one(database: TestDatabase) {
        let mut without = Setup::still(1);
        without.executors.remove(&Kind::Demo);
        let clock = without.clock.clone();
        let db = without.open(&database).await;
        let (node, ticks) = without.by_hand(&database, &db);
        assert!(!node.engine.supports(Kind::Demo) && node.engine.supports(Kind::Protocol));
        let mut with = Setup::still(2);
        with.clock = clock;
        let (other, its_ticks) = with.by_hand(&database, &db);
        let task = other.submit(demo("{}")).await;
        assert_eq!(ticks.claim_due().await.unwrap(), 0);
        node.clock.advance(6 * SECOND);
        assert_eq!(ticks.relay().await.unwrap(), 1);
        assert_eq!(ticks.consume().await.unwrap(), 0, "its message is no claim here");
        assert_eq!(its_ticks.claim_due().await.unwrap(), 1);
        other.reaches(task.id, Status::Completed).await;
    }

    async fn gauges_say_what_is_in_the_database(database: TestDatabase) {
        recorder();
        let setup = Setup::still(3).with_config(|config| config.max_attempts = 1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let failing = node.submit(demo(r#"{"failUntilAttempt":9}"#)).await;
        let done = node.submit(protocol("a")).await;
        assert_eq!(ticks.claim_due().await.unwrap(), 2);
        node.reaches(failing.id, Status::Failed).await;
        node.reaches(done.id, Status::Completed).await;
        node.submit(demo("{}")).await;
        node.clock.advance(90 * SECOND);
        ticks.count().await.unwrap();
        for (series, value) in [
            (r#"tasks{status="PENDING"}"#, 1),
            (r#"tasks{status="IN_PROGRESS"}"#, 0),
            (r#"tasks{status="COMPLETED"}"#, 1),
            (r#"tasks{status="FAILED"}"#, 1),
            (r#"dead_letters{reason="internal"}"#, 1),
            (r#"dead_letters{reason="worker-lost"}"#, 0),
            ("task_oldest_runnable_age_seconds", 90),
            ("outbox_unpublished", 1),
            ("outbox_oldest_unpublished_age_seconds", 90),
            (r#"tasks_submitted_total{kind="demo",via="v2"}"#, 2),
        ] {
            eventually(LIMIT, series, || async { metric(series) == value }).await;
        }
    }
}
