//! Waiting: woken at once, guaranteed by the poll, and as cheap for ten thousand as for one.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, demo, metric, protocol, recorder},
    support::{TestDatabase, eventually, on_both_databases, within},
};
use futures::future::join_all;
use protocol_bridge::{
    domain::{
        ids::TaskId,
        task::{Kind, Phase, Progress, Status, Task},
    },
    engine::{Decision, Done, Run, WaitFor, Waited},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;

const STATUS_QUERIES: &str = r#"db_transaction_seconds_count{name="status_query"}"#;

on_both_databases! {
    async fn a_finish_here_wakes_at_once_and_one_elsewhere_within_a_poll(database: TestDatabase) {
        let go_on = Arc::new(Notify::new());
        let waiting = Arc::clone(&go_on);
        let mut setup = Setup::new().with_executor(Kind::Protocol, Script::new(move |_: Run| {
            let go_on = Arc::clone(&waiting);
            async move {
                go_on.notified().await;
                Decision::Done(Done::default())
            }
        }));
        // Only the hint can be in time here.
        setup.poll_interval = 3600 * SECOND;
        let db = setup.open(&database).await;
        let here = setup.start(&database, &db);
        let mut setup = Setup::new().with_executor(Kind::Protocol, Script::new(|_| std::future::pending()));
        setup.config.max_running = 1;
        setup.poll_interval = SECOND / 5;
        let (elsewhere, ticks) = setup.by_hand(&database, &db);
        let task = here.submit(protocol("a")).await;
        here.reaches(task.id, Status::InProgress).await;
        let deadline = here.clock.monotonic() + LIMIT;
        let (wait_here, wait_elsewhere) = (here.engine.hub().wait(task.id, WaitFor::Finish, deadline), elsewhere.engine.hub().wait(task.id, WaitFor::Finish, elsewhere.clock.monotonic() + LIMIT));
        let looks = async {
            eventually(LIMIT, "both wait", || async { here.engine.hub().waiters() + elsewhere.engine.hub().waiters() == 2 }).await;
            go_on.notify_one();
            here.reaches(task.id, Status::Completed).await;
            ticks.look().await.unwrap();
        };
        let (seen_here, seen_elsewhere, ()) = within(5 * SECOND, "both are woken", Box::pin(async { futures::join!(wait_here, wait_elsewhere, looks) })).await;
        for seen in [seen_here, seen_elsewhere] {
            let Waited::Reached(seen) = seen.unwrap() else { panic!("not reached") };
            assert_eq!(seen.status, Status::Completed);
        }
        assert_eq!(here.engine.hub().waiters() + elsewhere.engine.hub().waiters(), 0);
        here.kill().await;
    }

    async fn a_deadline_looks_once_more(database: TestDatabase) {
        let mut setup = Setup::new();
        setup.poll_interval = 3600 * SECOND;
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let mut later = demo("{}");
        later.run_at = Some(node.clock.now() + 3600 * SECOND);
        let (finished, unfinished) = (node.submit(later.clone()).await, node.submit(later).await);
        let deadline = node.clock.monotonic() + SECOND;
        let hub = node.engine.hub();
        let wait = async { futures::join!(hub.wait(finished.id, WaitFor::Finish, deadline), hub.wait(unfinished.id, WaitFor::Finish, deadline)) };
        let meanwhile = async {
            eventually(LIMIT, "both wait", || async { hub.waiters() == 2 }).await;
            // The first look is over; nobody tells this process of what happens now.
            node.clock.sleep(SECOND / 5).await;
            let id = finished.id.0;
            let literal = if database.url.starts_with("sqlite") { format!("x'{}'", id.simple()) } else { format!("'{id}'") };
            database.execute(&format!("UPDATE task SET status = 'CANCELLED', finished_us = 1, revision = revision + 1 WHERE id = {literal}")).await;
        };
        let ((seen, timed_out), ()) = futures::join!(wait, meanwhile);
        let late = node.clock.monotonic().since(deadline);
        assert!(matches!(seen.unwrap(), Waited::Reached(task) if task.status == Status::Cancelled));
        assert!(matches!(timed_out.unwrap(), Waited::Deadline(task) if task.id == unfinished.id));
        assert!(late < SECOND, "{late:?}");
        let unknown = hub.wait(TaskId(uuid::Uuid::nil()), WaitFor::Finish, node.clock.monotonic() + LIMIT).await.unwrap();
        assert!(matches!(unknown, Waited::Unknown), "{unknown:?}");
        node.kill().await;
    }

    async fn waiting_costs_one_query_per_poll_however_many_wait(database: TestDatabase) {
        recorder();
        let mut setup = Setup::new();
        setup.poll_interval = SECOND / 4;
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let mut ids = Vec::new();
        for _ in 0..50 {
            let mut later = demo("{}");
            later.run_at = Some(node.clock.now() + 3600 * SECOND);
            ids.push(node.submit(later).await.id);
        }
        let hub = node.engine.hub();
        let deadline = node.clock.monotonic() + 4 * SECOND;
        let waits = join_all((0..1000).map(|waiter| hub.wait(ids[waiter % ids.len()], WaitFor::Finish, deadline)));
        let watch = async {
            eventually(LIMIT, "all wait", || async { hub.waiters() == 1000 }).await;
            node.clock.sleep(SECOND).await;
            let before = metric(STATUS_QUERIES);
            assert!(before < 20, "those who came at once shared their first look: {before}");
            node.clock.sleep(2 * SECOND).await;
            let queries = metric(STATUS_QUERIES) - before;
            assert!((1..=9).contains(&queries), "{queries} in eight polls");
            metric(STATUS_QUERIES)
        };
        let (waited, before) = futures::join!(waits, watch);
        assert!(waited.iter().all(|waited| matches!(waited, Ok(Waited::Deadline(_)))));
        let queries = metric(STATUS_QUERIES) - before;
        assert!(queries < 20, "those whose wait ended at once shared their last look: {queries}");
        assert_eq!(hub.waiters(), 0);
        node.kill().await;
    }

    async fn who_waits_for_the_end_only_costs_no_query_when_a_step_is_done(database: TestDatabase) {
        recorder();
        let go_on = Arc::new(Notify::new());
        let waiting = Arc::clone(&go_on);
        let mut setup = Setup::new().with_executor(Kind::Protocol, Script::new(move |run: Run| {
            let go_on = Arc::clone(&waiting);
            async move {
                go_on.notified().await;
                run.checkpoint(Phase::Merge, Progress { done: 1, known: 2 }, Vec::new()).await.expect("it holds its lease");
                go_on.notified().await;
                Decision::Done(Done::default())
            }
        }));
        setup.poll_interval = 3600 * SECOND;
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(protocol("a")).await;
        node.reaches(task.id, Status::InProgress).await;
        let queries = || metric(r#"db_transaction_seconds_count{name="status_query"}"#);
        let wait = node.engine.hub().wait(task.id, WaitFor::Finish, node.clock.monotonic() + LIMIT);
        let meanwhile = async {
            eventually(LIMIT, "the first look is over", || async { queries() == 1 }).await;
            go_on.notify_one();
            eventually(LIMIT, "the step is done", || async { node.task(task.id).await.phase == Some(Phase::Merge) }).await;
            // Longer than asks are collected for.
            node.clock.sleep(SECOND / 10).await;
            go_on.notify_one();
        };
        let (waited, ()) = within(LIMIT, "it is woken by the end", Box::pin(async { futures::join!(wait, meanwhile) })).await;
        assert!(matches!(waited.unwrap(), Waited::Reached(task) if task.status == Status::Completed));
        assert_eq!(queries(), 1);
        node.kill().await;
    }

    async fn a_long_poll_answers_on_a_change_of_status_or_phase_and_not_on_progress(database: TestDatabase) {
        let go_on = Arc::new(Notify::new());
        let waiting = Arc::clone(&go_on);
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(move |run: Run| {
            let go_on = Arc::clone(&waiting);
            async move {
                for (phase, done) in [(Phase::Collect, 1), (Phase::Collect, 2), (Phase::Check, 3)] {
                    go_on.notified().await;
                    let _ = run.checkpoint(phase, Progress { done, known: 3 }, Vec::new()).await;
                }
                go_on.notified().await;
                Decision::Done(Done::default())
            }
        }));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(protocol("a")).await;
        let hub = node.engine.hub();
        let change = async |known: &Task| {
            let deadline = node.clock.monotonic() + LIMIT;
            match within(LIMIT, "a change", hub.wait(task.id, WaitFor::change_of(known), deadline)).await.unwrap() {
                Waited::Reached(task) => task,
                other => panic!("{other:?}"),
            }
        };
        let started = change(&task).await;
        assert_eq!(started.status, Status::InProgress);
        go_on.notify_one();
        let collecting = change(&started).await;
        assert_eq!(collecting.phase, Some(Phase::Collect));
        let (checking, ()) = futures::join!(change(&collecting), async {
            eventually(LIMIT, "it waits", || async { hub.waiters() == 1 }).await;
            go_on.notify_one();
            eventually(LIMIT, "progress", || async { node.task(task.id).await.progress.done == 2 }).await;
            node.clock.sleep(SECOND / 5).await;
            assert_eq!(hub.waiters(), 1, "progress alone is no answer");
            go_on.notify_one();
        });
        assert_eq!(checking.phase, Some(Phase::Check));
        assert_eq!(change(&task).await.revision, checking.revision, "who is behind is told at once");
        go_on.notify_one();
        assert_eq!(change(&checking).await.status, Status::Completed);
        node.kill().await;
    }

    async fn a_drain_answers_those_who_wait_and_those_who_come(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let mut later = demo("{}");
        later.run_at = Some(node.clock.now() + 3600 * SECOND);
        let task = node.submit(later).await;
        let hub = node.engine.hub();
        let deadline = node.clock.monotonic() + LIMIT;
        let (waited, ()) = futures::join!(hub.wait(task.id, WaitFor::Finish, deadline), async {
            eventually(LIMIT, "it waits", || async { hub.waiters() == 1 }).await;
            node.shutdown.begin();
            // Others may still finish it: the wait goes on until it is told to end.
            node.clock.sleep(SECOND / 5).await;
            assert_eq!(hub.waiters(), 1);
            hub.drain();
        });
        assert!(matches!(waited.unwrap(), Waited::Draining(_)));
        within(5 * SECOND, "everything has ended", node.shutdown.finished()).await;
        let waited = within(5 * SECOND, "an answer", hub.wait(task.id, WaitFor::Finish, deadline)).await;
        assert!(matches!(waited.unwrap(), Waited::Draining(_)));
    }

    async fn who_hangs_up_is_not_waited_for(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(demo(r#"{"sleepMs":500}"#)).await;
        let hub = node.engine.hub();
        let gone = tokio::time::timeout(Duration::from_millis(50), hub.wait(task.id, WaitFor::Finish, node.clock.monotonic() + LIMIT)).await;
        assert!(gone.is_err());
        assert_eq!(hub.waiters(), 0);
        assert_eq!(node.reaches(task.id, Status::Completed).await.claim_no, 1, "its task goes on");
        node.kill().await;
    }
}
