//! Accepted exactly once: per idempotency key, and per agenda while its task is active.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Script, Setup, author, demo, endless, protocol, with_key},
    support::{TestDatabase, eventually, on_both_databases},
};
use futures::{FutureExt as _, future::join_all};
use protocol_bridge::{
    domain::{
        failure::{Failure, FailureCode},
        task::{Kind, Status},
    },
    engine::{Cancelled, Decision, Overload, SubmitError, Submitted, submit_effect},
    store::{self, Dialect, Fault, setting},
};
use std::{collections::HashSet, time::Duration};

/// Two nodes over one database; on SQLite two engines of one process, since no second process may serve the file.
async fn two_nodes(database: &TestDatabase, setup: impl Fn() -> Setup) -> [Node; 2] {
    let db = setup().open(database).await;
    let other = if database.dialect == Dialect::Postgres { setup().open(database).await } else { db.clone() };
    [setup().start(database, &db), setup().start(database, &other)]
}

on_both_databases! {
    async fn one_key_or_agenda_gives_one_task_however_many_ask_at_once(database: TestDatabase) {
        let nodes = two_nodes(&database, || Setup::new().with_executor(Kind::Protocol, endless()).with_config(|config| config.max_running = 512)).await;
        for round in 0..100 {
            let calls = (0..20).map(|call| {
                let submission = match round % 3 {
                    0 => with_key(demo("{}"), &format!("key-{round}"), "same"),
                    1 => protocol(&format!("agenda-{round}")),
                    // Different keys, one agenda: each key is bound to the task that won.
                    _ => with_key(protocol(&format!("agenda-{round}")), &format!("key-{round}-{}", call % 5), "same"),
                };
                nodes[call % 2].engine.submit(submission, None)
            });
            let answers: Vec<Submitted> = join_all(calls).await.into_iter().map(|answer| answer.expect("accepted or joined")).collect();
            let ids: HashSet<_> = answers.iter().map(|answer| answer.task.id).collect();
            assert_eq!(ids.len(), 1, "round {round}");
            assert_eq!(answers.iter().filter(|answer| !answer.joined).count(), 1, "round {round}: one was first");
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, 100);
        assert_eq!(database.number("SELECT COUNT(DISTINCT message_id) FROM (SELECT message_id FROM outbox UNION SELECT message_id FROM inbox) AS m").await, 100);
        for node in &nodes {
            node.kill().await;
        }
    }

    async fn a_key_answers_for_its_content_until_seven_days_after_the_end(database: TestDatabase) {
        let setup = Setup::still(1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let first = node.submit(with_key(demo("{}"), "key", "one")).await;
        let refused = node.engine.submit(with_key(demo("{}"), "key", "two"), None).await;
        assert!(matches!(refused, Err(SubmitError::KeyReused)), "{refused:?}");
        ticks.claim_due().await.unwrap();
        node.reaches(first.id, Status::Completed).await;
        node.clock.advance(Duration::from_hours(7 * 24 - 1));
        let again = node.engine.submit(with_key(demo("{}"), "key", "one"), None).await.unwrap();
        assert!(again.joined && again.task.id == first.id && again.task.status == Status::Completed);
        node.clock.advance(Duration::from_hours(1));
        let fresh = node.engine.submit(with_key(demo("{}"), "key", "two"), None).await.unwrap();
        assert!(!fresh.joined && fresh.task.id != first.id, "the key is free again");
    }

    async fn a_join_pulls_a_task_forward_that_was_never_claimed_and_leaves_one_in_back_off(database: TestDatabase) {
        let setup = Setup::still(2).with_executor(Kind::Protocol, Script::new(|_| async {
            Decision::Retry(Failure::new(FailureCode::ReportUnavailable, "Away."))
        }));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let mut later = protocol("a");
        later.run_at = Some(node.clock.now() + 3600 * SECOND);
        let task = node.submit(later).await;
        assert_eq!(task.next_attempt_at, node.clock.now() + 3600 * SECOND);
        assert_eq!((ticks.relay().await.unwrap(), ticks.claim_due().await.unwrap()), (0, 0), "it is not due");
        let joined = node.engine.submit(protocol("a"), None).await.unwrap();
        assert!(joined.joined && joined.task.id == task.id);
        assert_eq!(joined.task.next_attempt_at, node.clock.now());
        assert_eq!(ticks.relay().await.unwrap(), 1, "its message was pulled forward, too");
        assert_eq!(ticks.consume().await.unwrap(), 1);
        let waiting = node.claimed(task.id, 1, Status::Pending).await;
        let joined = node.engine.submit(protocol("a"), None).await.unwrap();
        assert!(joined.joined);
        assert_eq!(joined.task.next_attempt_at, waiting.next_attempt_at, "the back-off stands");
    }

    async fn a_task_may_be_due_long_ago_or_in_thousands_of_years(database: TestDatabase) {
        let setup = Setup::still(7);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let at = async |time: &str| {
            let mut submission = demo("{}");
            submission.run_at = Some(time.parse().expect("a time"));
            node.submit(submission).await
        };
        let past = at("1970-01-01T00:00:00Z").await;
        assert_eq!(past.next_attempt_at, node.clock.now(), "at once");
        let years = at("2031-01-01T00:00:00Z").await;
        let end = at("9999-12-30T00:00:00Z").await;
        assert_eq!((ticks.relay().await.unwrap(), ticks.claim_due().await.unwrap()), (0, 1), "the first was handed over");
        node.reaches(past.id, Status::Completed).await;
        ticks.count().await.unwrap();
        let wait = years.next_attempt_at.since(node.clock.now());
        node.clock.advance(wait - SECOND);
        assert_eq!((ticks.relay().await.unwrap(), ticks.claim_due().await.unwrap()), (0, 0), "not a second earlier");
        node.clock.advance(SECOND);
        assert_eq!((ticks.relay().await.unwrap(), ticks.consume().await.unwrap()), (1, 1));
        let done = node.reaches(years.id, Status::Completed).await;
        assert_eq!(done.started_at, Some(years.next_attempt_at));
        assert_eq!(node.task(end.id).await.status, Status::Pending);
        assert!(matches!(node.engine.cancel(end.id, &author()).await.unwrap(), Cancelled::Now(_)));
    }

    async fn a_full_queue_refuses_new_tasks_and_still_answers_joins_and_repeats(database: TestDatabase) {
        let setup = Setup::still(3).with_config(|config| config.max_pending = 2);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let known = node.submit(with_key(demo("{}"), "known", "same")).await;
        let active = node.submit(protocol("a")).await;
        let refused = node.engine.submit(with_key(demo("{}"), "refused", "same"), None).await;
        assert!(matches!(refused, Err(SubmitError::Overloaded(Overload::Queue))), "{refused:?}");
        assert_eq!(node.submit(with_key(demo("{}"), "known", "same")).await.id, known.id);
        assert_eq!(node.submit(protocol("a")).await.id, active.id);
        assert_eq!(database.number("SELECT COUNT(*) FROM idempotency_key").await, 1, "the refused key is free");
        assert_eq!(ticks.claim_due().await.unwrap(), 2);
        node.reaches(known.id, Status::Completed).await;
        node.reaches(active.id, Status::Completed).await;
        node.submit(with_key(demo("{}"), "refused", "same")).await;
    }

    async fn a_submit_whose_answer_is_lost_is_accepted_once_and_runs(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        db.faults().arm("submit_task", Fault::FailAfter, 1);
        let lost = node.engine.submit(with_key(demo("{}"), "key", "same"), None).await;
        assert!(matches!(lost, Err(SubmitError::Store(_))), "{lost:?}");
        let again = node.engine.submit(with_key(demo("{}"), "key", "same"), None).await.unwrap();
        assert!(again.joined);
        // Nobody handed its message over; the table is looked at.
        let task = node.reaches(again.task.id, Status::Completed).await;
        assert_eq!(task.claim_no, 1);
        db.faults().arm("submit_task", Fault::FailBefore, 1);
        assert!(node.engine.submit(demo("{}"), None).await.is_err());
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, 1);
        node.kill().await;
    }

    async fn what_the_door_adds_commits_with_the_task_or_neither_does(database: TestDatabase) {
        let setup = Setup::still(4);
        let db = setup.open(&database).await;
        let (node, _ticks) = setup.by_hand(&database, &db);
        let failing = submit_effect(|_, _| async { Err(store::Error::Injected("effect")) }.boxed());
        assert!(node.engine.submit(protocol("a"), Some(failing)).await.is_err());
        assert_eq!(database.number("SELECT COUNT(*) FROM task").await, 0);
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox").await, 0);
        let noting = submit_effect(|tx, submitted| {
            let id = submitted.task.id.to_string();
            async move { setting::put(tx, "noted", &id).await }.boxed()
        });
        let mut submission = protocol("a");
        submission.callback_url = Some("https://one.example/".to_owned());
        let task = node.engine.submit(submission.clone(), Some(noting)).await.unwrap().task;
        assert_eq!(database.fetch("SELECT value FROM setting WHERE name = 'noted'").await[0][0], task.id.to_string());
        submission.callback_url = Some("https://two.example/".to_owned());
        node.submit(submission).await;
        assert_eq!(database.number("SELECT COUNT(*) FROM task_callback").await, 2, "a joiner's callback is added");
    }

    async fn an_accepted_task_is_readable_at_once(database: TestDatabase) {
        let nodes = two_nodes(&database, Setup::new).await;
        for round in 0..200 {
            let task = nodes[round % 2].submit(demo("{}")).await;
            assert!(nodes[(round + 1) % 2].engine.task(task.id).await.unwrap().is_some(), "round {round}");
        }
        eventually(LIMIT, "all are done", || async { database.number("SELECT COUNT(*) FROM task WHERE status <> 'COMPLETED'").await == 0 }).await;
        for node in &nodes {
            node.kill().await;
        }
    }
}
