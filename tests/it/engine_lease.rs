//! Who may write to a task: the holder of its lease, as long as the lease holds, and nobody else.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, author, demo, endless, metric, protocol, recorder, start_of_time},
    support::{TestDatabase, eventually, on_both_databases},
};
use futures::FutureExt as _;
use protocol_bridge::{
    base::clock::Clock,
    domain::{
        failure::FailureCode,
        task::{AttemptOutcome, Kind, Phase, Progress, Status},
    },
    engine::{DeadLetterFilter, Decision, Done, Run, Step},
    store::Fault,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Notify;

fn finishes_when(go_on: &Arc<Notify>) -> Arc<dyn protocol_bridge::engine::TaskExecutor> {
    let go_on = Arc::clone(go_on);
    Script::new(move |_: Run| {
        let go_on = Arc::clone(&go_on);
        async move {
            go_on.notified().await;
            Decision::Done(Done::default())
        }
    })
}

on_both_databases! {
    async fn a_task_that_outlives_many_leases_runs_once(database: TestDatabase) {
        let runs = Arc::new(AtomicU32::new(0));
        let setup = || {
            let runs = Arc::clone(&runs);
            Setup::new()
                .with_config(|config| (config.lease, config.heartbeat) = (2 * SECOND, SECOND / 2))
                .with_executor(Kind::Protocol, Script::new(move |run: Run| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    async move {
                        run.clock().sleep(7 * SECOND).await;
                        Decision::Done(Done::default())
                    }
                }))
        };
        let db = setup().open(&database).await;
        // A renewal that fails is tried again in time.
        db.faults().arm("renew_leases", Fault::FailBefore, 2);
        let nodes = [(); 3].map(|()| setup().start(&database, &db));
        let task = nodes[0].submit(protocol("long")).await;
        let task = nodes[0].reaches(task.id, Status::Completed).await;
        assert_eq!((task.claim_no, task.attempt_no, runs.load(Ordering::Relaxed)), (1, 1, 1));
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1);
        for node in nodes {
            node.kill().await;
        }
    }

    async fn the_longest_attempt_there_may_be_is_never_taken_at_the_default_settings(database: TestDatabase) {
        let clock = Clock::manual(start_of_time());
        let setup = |seed| {
            let mut setup = Setup::still(seed).with_executor(Kind::Protocol, endless()).with_config(|config| config.max_attempts = 1);
            setup.clock = clock.clone();
            setup
        };
        let db = setup(1).open(&database).await;
        let (node, ticks) = setup(1).by_hand(&database, &db);
        let others = [setup(2).by_hand(&database, &db), setup(3).by_hand(&database, &db)];
        let task = node.submit(protocol("long")).await;
        assert_eq!(ticks.claim_due().await.unwrap(), 1);
        let config = crate::support::config().engine;
        let beats = config.attempt_deadline.as_secs() / config.heartbeat.as_secs();
        for beat in 1..beats {
            clock.advance(config.heartbeat);
            ticks.renew().await.unwrap();
            for (_, ticks) in &others {
                assert_eq!((ticks.rescue().await.unwrap(), ticks.claim_due().await.unwrap()), (0, 0), "at heartbeat {beat}");
            }
        }
        assert_eq!(node.task(task.id).await.claim_no, 1);
        // Its time is over: what ends it is the deadline, not a rescue.
        clock.advance(config.heartbeat);
        let failed = node.reaches(task.id, Status::Failed).await;
        assert_eq!((failed.claim_no, failed.failure.unwrap().code), (1, FailureCode::DeadlineExceeded));
    }

    async fn a_task_that_kills_its_workers_ends_as_a_dead_letter(database: TestDatabase) {
        let clock = Clock::manual(start_of_time());
        let setup = |seed| {
            let mut setup = Setup::still(seed).with_executor(Kind::Protocol, endless()).with_config(|config| config.max_attempts = 3);
            setup.clock = clock.clone();
            setup
        };
        let db = setup(1).open(&database).await;
        let (watcher, rescuer) = setup(100).by_hand(&database, &db);
        let task = watcher.submit(protocol("deadly")).await;
        let other = watcher.submit(protocol("cancelled-between-crashes")).await;
        for crash in 1..=3 {
            let (victim, ticks) = setup(crash).by_hand(&database, &db);
            assert!(ticks.claim_due().await.unwrap() >= 1);
            victim.kill().await;
            assert_eq!(rescuer.rescue().await.unwrap(), 0, "the lease still holds");
            clock.advance(31 * SECOND);
            assert!(rescuer.rescue().await.unwrap() >= 1);
            assert_eq!(rescuer.rescue().await.unwrap(), 0, "once is enough");
            if crash == 1 {
                assert!(matches!(watcher.engine.cancel(other.id, &author()).await.unwrap(), protocol_bridge::engine::Cancelled::Now(_)));
            }
        }
        let task = watcher.task(task.id).await;
        assert_eq!((task.status, task.claim_no, task.failure.unwrap().code), (Status::Failed, 3, FailureCode::WorkerLost));
        let letters = watcher.engine.dead_letters(DeadLetterFilter::default(), None, 10).await.unwrap().items;
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].task_id, letters[0].reason, letters[0].attempts), (task.id, FailureCode::WorkerLost, 3));
        let attempts = watcher.engine.attempts(task.id).await.unwrap();
        assert!(attempts.iter().all(|attempt| attempt.outcome == Some(AttemptOutcome::WorkerLost) && attempt.ended_at.is_some()), "{attempts:?}");
        assert_eq!(watcher.task(other.id).await.status, Status::Cancelled);
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0, "no message is left behind");
    }

    async fn one_row_that_cannot_be_rescued_does_not_stop_the_sweep(database: TestDatabase) {
        let setup = Setup::still(5).with_executor(Kind::Demo, endless());
        let clock = setup.clock.clone();
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let broken = node.submit(demo("{}")).await;
        clock.advance(SECOND);
        let good = node.submit(demo("{}")).await;
        assert_eq!(ticks.claim_due().await.unwrap(), 2);
        node.kill().await;
        // The first in the order of the sweep.
        database.execute("UPDATE task SET failure = 'rubbish', lease_until_us = 1 WHERE claim_no = 1 AND created_us = (SELECT MIN(created_us) FROM task)").await;
        clock.advance(31 * SECOND);
        assert_eq!(ticks.rescue().await.unwrap(), 1);
        assert_eq!(node.task(good.id).await.status, Status::Pending);
        assert!(node.engine.task(broken.id).await.is_err(), "table, column and row are named");
    }

    async fn a_stale_holders_finish_is_refused(database: TestDatabase) {
        recorder();
        let (late, prompt) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let setup = Setup::still(6).with_executor(Kind::Protocol, finishes_when(&late));
        let db = setup.open(&database).await;
        let (stopped, its_ticks) = setup.by_hand(&database, &db);
        // Another machine, whose clock has gone on while the first stood still.
        let mut setup = Setup::still(7).with_executor(Kind::Protocol, finishes_when(&prompt));
        setup.clock = Clock::manual(start_of_time() + 40 * SECOND);
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = stopped.submit(protocol("a")).await;
        assert_eq!(its_ticks.claim_due().await.unwrap(), 1);
        assert_eq!(ticks.rescue().await.unwrap(), 1);
        assert_eq!(ticks.claim_due().await.unwrap(), 1);
        late.notify_one();
        eventually(LIMIT, "the stale attempt ends", || async { its_ticks.running() == 0 }).await;
        let held = node.task(task.id).await;
        assert_eq!((held.status, held.claim_no), (Status::InProgress, 2));
        assert_eq!(metric("leases_lost_total"), 1);
        prompt.notify_one();
        node.reaches(task.id, Status::Completed).await;
        let outcomes: Vec<_> = node.engine.attempts(task.id).await.unwrap().into_iter().map(|attempt| attempt.outcome.unwrap()).collect();
        assert_eq!(outcomes, [AttemptOutcome::WorkerLost, AttemptOutcome::Completed]);
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1);
    }

    async fn an_attempt_stops_when_its_lease_runs_out_here_or_is_lost_there(database: TestDatabase) {
        recorder();
        let stops = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&stops);
        let setup = Setup::still(8).with_executor(Kind::Demo, Script::new(move |run: Run| {
            let stops = Arc::clone(&counted);
            async move {
                let token = run.cancelled().clone();
                // What an executor leaves running learns of the end as well.
                tokio::spawn(async move {
                    token.cancelled().await;
                    stops.fetch_add(1, Ordering::Relaxed);
                });
                std::future::pending::<()>().await;
                Decision::Done(Done::default())
            }
        }));
        let clock = setup.clock.clone();
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        node.submit(demo("{}")).await;
        ticks.claim_due().await.unwrap();
        clock.advance(20 * SECOND);
        ticks.renew().await.unwrap();
        clock.advance(20 * SECOND);
        ticks.renew().await.unwrap();
        assert_eq!(ticks.running(), 1, "renewed");
        db.faults().arm("renew_leases", Fault::FailBefore, 1);
        clock.advance(20 * SECOND);
        assert!(ticks.renew().await.is_err());
        assert_eq!(ticks.running(), 1, "not yet");
        clock.advance(10 * SECOND);
        eventually(LIMIT, "it stops", || async { ticks.running() == 0 && stops.load(Ordering::Relaxed) == 1 }).await;
        assert_eq!(metric("leases_lost_total"), 1);

        // Taken over elsewhere: the next renewal tells.
        assert_eq!(ticks.rescue().await.unwrap(), 0, "exactly at its end a lease has not run out");
        clock.advance(SECOND);
        assert_eq!(ticks.rescue().await.unwrap(), 1);
        assert_eq!(ticks.claim_due().await.unwrap(), 1);
        database.execute("UPDATE task SET status = 'PENDING', lease_token = NULL, lease_until_us = NULL").await;
        ticks.renew().await.unwrap();
        eventually(LIMIT, "it stops", || async { ticks.running() == 0 && stops.load(Ordering::Relaxed) == 2 }).await;
    }

    async fn a_claim_whose_answer_is_lost_is_found_by_its_token_and_run(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        db.faults().arm("claim_message", Fault::FailAfter, 1);
        let task = node.submit(demo("{}")).await;
        let task = node.reaches(task.id, Status::Completed).await;
        assert_eq!((task.claim_no, task.attempt_no), (1, 1));
        db.faults().arm("claim_message", Fault::FailBefore, 1);
        let task = node.submit(demo("{}")).await;
        let task = node.reaches(task.id, Status::Completed).await;
        assert_eq!((task.claim_no, task.attempt_no), (1, 1), "nothing had happened; the table is looked at");
        node.kill().await;
    }

    async fn a_drain_gives_attempts_back_uncounted(database: TestDatabase) {
        let setup = || Setup::new().with_executor(Kind::Protocol, endless());
        let db = setup().open(&database).await;
        let node = setup().start(&database, &db);
        let task = node.submit(protocol("a")).await;
        node.reaches(task.id, Status::InProgress).await;
        node.shutdown.begin();
        node.shutdown.finished().await;
        let given_back = node.task(task.id).await;
        assert_eq!((given_back.status, given_back.claim_no, given_back.attempt_no), (Status::Pending, 1, 0));
        assert_eq!(node.engine.attempts(task.id).await.unwrap()[0].outcome, Some(AttemptOutcome::Released));
        let ids: Vec<_> = node.engine.messages(task.id).await.unwrap().iter().map(|message| message.message_id).collect();
        assert_eq!(ids.len(), 2, "a new message for the next claim");
        let next = Setup::new().start(&database, &db);
        let done = next.reaches(task.id, Status::Completed).await;
        assert_eq!((done.claim_no, done.attempt_no), (2, 1));
        next.kill().await;
    }

    async fn deadlines_and_panics_are_failures_like_others(database: TestDatabase) {
        let setup = Setup::still(9)
            .with_config(|config| config.attempt_deadline = 5 * SECOND)
            .with_executor(Kind::Protocol, endless())
            .with_executor(Kind::Demo, Script::new(|run: Run| async move {
                assert!(run.task().claim_no > 1, "on purpose");
                Decision::Done(Done::default())
            }));
        let clock = setup.clock.clone();
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let (hangs, panics) = (node.submit(protocol("a")).await, node.submit(demo("{}")).await);
        assert_eq!(ticks.claim_due().await.unwrap(), 2);
        let panicked = node.claimed(panics.id, 1, Status::Pending).await;
        assert_eq!(panicked.failure.unwrap().code, FailureCode::Internal);
        clock.advance(5 * SECOND);
        let hung = node.claimed(hangs.id, 1, Status::Pending).await;
        assert_eq!(hung.failure.unwrap().code, FailureCode::DeadlineExceeded);
        assert!(hung.last_error.unwrap().contains("5 s"));
        clock.advance(3 * SECOND);
        ticks.claim_due().await.unwrap();
        node.claimed(panics.id, 2, Status::Completed).await;
        node.kill().await;
    }

    async fn steps_and_progress_are_written_under_the_lease(database: TestDatabase) {
        let (at, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (reached, wait) = (Arc::clone(&at), Arc::clone(&go_on));
        let setup = Setup::still(10).with_executor(Kind::Protocol, Script::new(move |run: Run| {
            let (at, go_on) = (Arc::clone(&reached), Arc::clone(&wait));
            async move {
                let step = |name: &str| Step { name: name.to_owned(), key: format!("key of {name}"), output: "{}".to_owned() };
                let progress = |done| Progress { done, known: 4 };
                run.checkpoint(Phase::Collect, progress(1), vec![step("COLLECT/1"), step("COLLECT/2")]).await.unwrap();
                // Within the second: noted, not written.
                run.progress(Phase::Collect, progress(2)).await.unwrap();
                at.notify_one();
                go_on.notified().await;
                run.progress(Phase::Merge, progress(3)).await.unwrap();
                at.notify_one();
                go_on.notified().await;
                let _ = run.checkpoint(Phase::Merge, progress(4), vec![step("MERGE/1")]).await;
                Decision::Done(Done::default())
            }
        }));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = node.submit(protocol("a")).await;
        // The outcome of the first write is unknown: it is written again.
        db.faults().arm("checkpoint", Fault::FailAfter, 1);
        ticks.claim_due().await.unwrap();
        eventually(LIMIT, "the fault was met", || async { database.number("SELECT COUNT(*) FROM checkpoint").await == 2 }).await;
        eventually(LIMIT, "it was written again", || async {
            node.clock.advance(SECOND / 1000);
            at.notified().now_or_never().is_some()
        })
        .await;
        let seen = node.task(task.id).await;
        assert_eq!((seen.phase, seen.progress), (Some(Phase::Collect), Progress { done: 1, known: 4 }));
        go_on.notify_one();
        at.notified().await;
        let seen = node.task(task.id).await;
        assert_eq!((seen.phase, seen.progress), (Some(Phase::Merge), Progress { done: 3, known: 4 }));
        assert!(seen.revision > task.revision + 2);
        database.execute("UPDATE task SET status = 'PENDING', lease_token = NULL, lease_until_us = NULL").await;
        go_on.notify_one();
        eventually(LIMIT, "it was told to stop", || async { ticks.running() == 0 }).await;
        assert_eq!(database.number("SELECT COUNT(*) FROM checkpoint").await, 2, "without the lease nothing is stored");
        assert_eq!(node.task(task.id).await.status, Status::Pending);
    }
}
