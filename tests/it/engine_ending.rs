//! How tasks end, once each: retries and their times, dead letters and replays, cancels that race with finishes, answers that are lost.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, author, demo, endless, metric, protocol, recorder, with_key},
    support::{TestDatabase, eventually, on_both_databases, within},
};
use futures::{FutureExt as _, future::join_all};
use protocol_bridge::{
    domain::{
        event::EventDocument,
        failure::{Failure, FailureCode},
        ids::DeadLetterId,
        protocol::Format,
        task::{AttemptOutcome, Kind, Phase, Progress, Status},
    },
    engine::{Cancelled, DeadLetterFilter, Decision, Done, Effected, Replayed, Run, Step, TaskFilter, effect},
    store::{self, Fault},
};
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

async fn only_dead_letter(node: &crate::engine_world::Node) -> protocol_bridge::domain::dead_letter::DeadLetter {
    let filter = DeadLetterFilter { open_only: true, ..DeadLetterFilter::default() };
    let mut letters = node.engine.dead_letters(filter, None, 10).await.expect("readable").items;
    assert_eq!(letters.len(), 1);
    letters.remove(0)
}

on_both_databases! {
    async fn a_failed_attempt_is_tried_again_after_two_then_four_seconds(database: TestDatabase) {
        let setup = Setup::still(1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = node.submit(demo(r#"{"failUntilAttempt":3}"#)).await;
        for (claim, shortest, longest) in [(1, 2.0, 2.2), (2, 4.0, 4.4)] {
            ticks.relay().await.unwrap();
            ticks.mark().await;
            assert_eq!(ticks.consume().await.unwrap(), 1);
            let waiting = node.claimed(task.id, claim, Status::Pending).await;
            let ended = node.engine.attempts(task.id).await.unwrap().last().unwrap().ended_at.unwrap();
            let delay = waiting.next_attempt_at.since(ended).as_secs_f64();
            assert!((shortest..=longest).contains(&delay), "{delay}");
            assert!(waiting.last_error.unwrap().contains(&format!("Claim {claim} fails")));
            node.clock.advance(Duration::from_secs_f64(delay).saturating_sub(Duration::from_micros(10)));
            assert_eq!((ticks.relay().await.unwrap(), ticks.claim_due().await.unwrap()), (0, 0), "not a moment earlier");
            node.clock.advance(Duration::from_micros(20));
        }
        ticks.relay().await.unwrap();
        assert_eq!(ticks.consume().await.unwrap(), 1);
        let done = node.claimed(task.id, 3, Status::Completed).await;
        assert_eq!((done.attempt_no, done.last_error, done.failure), (3, None, None));
        assert_eq!(done.started_at, Some(task.created_at), "its first claim");
        let ids: HashSet<_> = database.fetch("SELECT message_id FROM inbox").await.into_iter().map(|row| row[0].to_string()).collect();
        assert_eq!(ids.len(), 3, "a new message id each time");
        let outcomes: Vec<_> = node.engine.attempts(task.id).await.unwrap().into_iter().map(|attempt| attempt.outcome.unwrap()).collect();
        assert_eq!(outcomes, [AttemptOutcome::Retried, AttemptOutcome::Retried, AttemptOutcome::Completed]);
    }

    async fn five_failed_attempts_make_a_dead_letter_and_its_replay_completes_at_the_fourth_claim(database: TestDatabase) {
        recorder();
        let setup = Setup::new().with_config(|config| config.retry_base = Duration::from_millis(20));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(with_key(demo(r#"{"failUntilAttempt":9}"#), "key", "same")).await;
        let failed = node.reaches(task.id, Status::Failed).await;
        assert_eq!((failed.claim_no, failed.attempt_no), (5, 5));
        let letter = only_dead_letter(&node).await;
        assert_eq!((letter.task_id, letter.reason, letter.attempts), (task.id, FailureCode::Internal, 5));
        assert_eq!(database.number("SELECT COUNT(*) FROM idempotency_key WHERE expires_us IS NOT NULL").await, 1);
        // Two operators press at once.
        let answers = join_all([node.engine.replay(letter.id, None, &author()), node.engine.replay(letter.id, None, &author())]).await;
        let queued = answers.iter().filter(|answer| matches!(answer, Ok(Replayed::Queued(_)))).count();
        let told = answers.iter().filter(|answer| matches!(answer, Ok(Replayed::AlreadyReplayed))).count();
        assert_eq!((queued, told), (1, 1), "{answers:?}");
        let done = node.reaches(task.id, Status::Completed).await;
        assert_eq!((done.id, done.claim_no, done.attempt_no), (task.id, 9, 4));
        // Nine; less one for each end that came before the message of its claim was marked as sent.
        assert!((7..=9).contains(&node.engine.messages(task.id).await.unwrap().len()));
        let closed = node.engine.dead_letters(DeadLetterFilter::default(), None, 10).await.unwrap().items.remove(0);
        assert!(closed.replayed_at.is_some());
        assert!(matches!(node.engine.replay(DeadLetterId(uuid::Uuid::nil()), None, &author()).await.unwrap(), Replayed::Unknown));
        assert_eq!(metric(r#"task_retries_total{kind="demo"}"#), 7);
        assert_eq!(metric(r#"tasks_finished_total{kind="demo",outcome="failed"}"#), 1);
        assert_eq!(metric(r#"tasks_finished_total{kind="demo",outcome="completed"}"#), 1);
        node.kill().await;
    }

    async fn a_failure_that_is_tried_once_more_gets_two_attempts_and_one_for_good_gets_one(database: TestDatabase) {
        let setup = Setup::new().with_config(|config| config.retry_base = Duration::from_millis(10)).with_executor(
            Kind::Protocol,
            Script::new(|run: Run| async move {
                let code = if run.task().agenda_id.as_ref().unwrap().as_str() == "once" { FailureCode::RenderLimit } else { FailureCode::AgendaNotFound };
                Failure::new(code, "a text with \0 in it").in_phase(Phase::Merge).into()
            }),
        );
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let (once, never) = (node.submit(protocol("once")).await, node.submit(protocol("never")).await);
        assert_eq!(node.reaches(once.id, Status::Failed).await.claim_no, 2);
        assert_eq!(node.reaches(never.id, Status::Failed).await.claim_no, 1);
        let letters = node.engine.dead_letters(DeadLetterFilter { reason: Some(FailureCode::AgendaNotFound), ..Default::default() }, None, 10).await.unwrap();
        assert_eq!((letters.items.len(), letters.items[0].phase), (1, Some(Phase::Merge)));
        let bodies = database.fetch("SELECT type FROM event").await;
        assert_eq!(bodies.len(), 2);
        assert!(bodies.iter().all(|row| row[0] == "ObesrabuoProtocolGenerationFailed"));
        node.kill().await;
    }

    async fn a_finish_whose_answer_is_lost_happens_once(database: TestDatabase) {
        recorder();
        let effects = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&effects);
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(move |_| {
            let effects = Arc::clone(&counted);
            async move {
                let effect = effect(move |tx| {
                    effects.fetch_add(1, Ordering::Relaxed);
                    async move {
                        store::setting::put(tx, "effect", "done").await?;
                        Ok(Effected { protocol_id: None, documents: vec![pdf()] })
                    }
                    .boxed()
                });
                Decision::Done(Done { effect: Some(effect) })
            }
        }));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        for (round, fault) in [(1, Fault::FailAfter), (2, Fault::FailBefore)] {
            db.faults().arm("finish_task", fault, 1);
            let task = node.submit(protocol(&format!("a{round}"))).await;
            let done = node.reaches(task.id, Status::Completed).await;
            assert_eq!(done.claim_no, 1);
            let finished = r#"tasks_finished_total{kind="protocol",outcome="completed"}"#;
            eventually(LIMIT, "it is counted", || async { metric(finished) == round }).await;
        }
        let events = database.fetch("SELECT body FROM event").await;
        assert_eq!(events.len(), 2, "one each");
        let event: serde_json::Value = serde_json::from_str(events[0][0].as_str().unwrap()).unwrap();
        assert_eq!(event["type"], "ObesrabuoProtocolGenerationCompleted");
        assert_eq!(event["data"]["documents"][0]["format"], "pdf");
        assert_eq!(effects.load(Ordering::Relaxed), 2, "once for each that was committed");
        node.kill().await;
    }

    async fn a_result_that_cannot_be_stored_is_a_failed_attempt(database: TestDatabase) {
        let setup = Setup::new().with_config(|config| (config.retry_base, config.max_attempts) = (Duration::from_millis(10), 2)).with_executor(
            Kind::Demo,
            Script::new(|_| async {
                let broken = effect(|_| async { Err(store::Error::Schema("broken on purpose".to_owned())) }.boxed());
                Decision::Done(Done { effect: Some(broken) })
            }),
        );
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let task = node.submit(demo("{}")).await;
        let failed = node.reaches(task.id, Status::Failed).await;
        assert_eq!((failed.claim_no, failed.failure.unwrap().code), (2, FailureCode::Internal));
        node.kill().await;
    }

    async fn cancels_that_race_with_finishes_leave_every_task_with_one_end(database: TestDatabase) {
        recorder();
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(|run: Run| async move {
            let millis = run.task().id.0.as_bytes()[15] % 40;
            run.clock().sleep(Duration::from_millis(millis.into())).await;
            Decision::Done(Done::default())
        }));
        let db = setup.open(&database).await;
        let node = Arc::new(setup.start(&database, &db));
        let all = (0..500).map(|number| {
            let node = Arc::clone(&node);
            tokio::spawn(async move {
                let task = node.submit(protocol(&format!("a{number}"))).await;
                // Some while they wait, some while they run, some when they are done.
                if number % 2 == 0 {
                    eventually(LIMIT, "it was claimed", || async { node.task(task.id).await.claim_no > 0 }).await;
                }
                node.clock.sleep(Duration::from_millis(u64::from(task.id.0.as_bytes()[14]) / 4)).await;
                let end = match node.engine.cancel(task.id, &author()).await.unwrap() {
                    Cancelled::Now(task) => {
                        assert!(matches!(node.engine.cancel(task.id, &author()).await.unwrap(), Cancelled::Before(_)), "twice is no error");
                        task
                    }
                    Cancelled::AlreadyFinished(task) => task,
                    other => panic!("{other:?}"),
                };
                assert!(end.status.is_terminal());
                (task.id, end.status)
            })
        });
        let ends: Vec<_> = within(LIMIT, "all are cancelled or done", join_all(all)).await.into_iter().map(|end| end.unwrap()).collect();
        eventually(LIMIT, "nothing runs any more", || async { database.number("SELECT COUNT(*) FROM attempt WHERE ended_us IS NULL").await == 0 }).await;
        node.clock.sleep(Duration::from_millis(300)).await;
        for (id, status) in &ends {
            assert_eq!(node.task(*id).await.status, *status, "{id} left a terminal status");
        }
        let count = |status: Status| i64::try_from(ends.iter().filter(|(_, end)| *end == status).count()).unwrap();
        let (completed, cancelled) = (count(Status::Completed), count(Status::Cancelled));
        assert!(completed + cancelled == 500 && completed > 0 && cancelled > 0, "{completed} + {cancelled}");
        assert_eq!(metric(r#"tasks_finished_total{kind="protocol",outcome="completed"}"#), completed);
        assert_eq!(metric(r#"tasks_finished_total{kind="protocol",outcome="cancelled"}"#), cancelled);
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 500);
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0);
        assert_eq!(database.number("SELECT COUNT(*) FROM attempt WHERE outcome = 'completed'").await, completed);
        assert!(matches!(node.engine.cancel(protocol_bridge::domain::ids::TaskId(uuid::Uuid::nil()), &author()).await.unwrap(), Cancelled::Unknown));
        node.kill().await;
    }

    async fn a_cancel_stops_the_executor_at_once_and_a_task_in_back_off_too(database: TestDatabase) {
        let setup = Setup::new().with_executor(Kind::Protocol, endless());
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let (running, waiting) = (node.submit(protocol("a")).await, node.submit(demo(r#"{"failUntilAttempt":9}"#)).await);
        node.reaches(running.id, Status::InProgress).await;
        node.claimed(waiting.id, 1, Status::Pending).await;
        for id in [running.id, waiting.id] {
            let Cancelled::Now(task) = node.engine.cancel(id, &author()).await.unwrap() else { panic!("not cancelled") };
            assert_eq!(task.failure.unwrap().code, FailureCode::Cancelled);
        }
        // The drain has nothing to wait for: the executor is gone.
        node.shutdown.begin();
        within(SECOND * 5, "everything has ended", node.shutdown.finished()).await;
        assert_eq!(database.number("SELECT COUNT(*) FROM attempt WHERE outcome IS NULL").await, 0);
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0);
    }

    async fn a_replay_waits_for_the_agendas_active_task(database: TestDatabase) {
        let setup = Setup::still(8).with_executor(Kind::Protocol, Script::new(|_| async { Failure::new(FailureCode::AgendaNotReady, "Not signed.").into() }));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let failed = node.submit(protocol("a")).await;
        ticks.claim_due().await.unwrap();
        node.reaches(failed.id, Status::Failed).await;
        let letter = only_dead_letter(&node).await;
        let active = node.submit(protocol("a")).await;
        assert_ne!(active.id, failed.id, "a failure is no answer to a new call");
        let Replayed::AgendaBusy(busy) = node.engine.replay(letter.id, None, &author()).await.unwrap() else { panic!("not busy") };
        assert_eq!(busy, active.id);
        node.engine.cancel(active.id, &author()).await.unwrap();
        let Replayed::Queued(queued) = node.engine.replay(letter.id, None, &author()).await.unwrap() else { panic!("not queued") };
        assert_eq!((queued.id, queued.status, queued.attempt_no, queued.claim_no), (failed.id, Status::Pending, 0, 1));
        let page = node.engine.tasks(TaskFilter { agenda_id: Some("a".parse().unwrap()), ..Default::default() }, None, 1).await.unwrap();
        assert_eq!(page.items[0].id, active.id, "newest first");
        let page = node.engine.tasks(TaskFilter::default(), page.next_cursor, 1).await.unwrap();
        assert_eq!((page.items[0].id, page.next_cursor), (failed.id, None));
        node.kill().await;
    }

    async fn a_replay_from_a_phase_forgets_its_steps_and_the_later_ones(database: TestDatabase) {
        let setup = Setup::still(9).with_executor(Kind::Protocol, Script::new(|run: Run| async move {
            for phase in Phase::ALL {
                let step = Step { name: format!("{phase}/x"), key: format!("key of {phase}"), output: "{}".to_owned() };
                if run.checkpoint(phase, Progress { done: 1, known: 1 }, vec![step]).await.is_err() {
                    break;
                }
            }
            Failure::new(FailureCode::RenderFailed, "It does not typeset.").into()
        }));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = node.submit(protocol("a")).await;
        ticks.claim_due().await.unwrap();
        node.reaches(task.id, Status::Failed).await;
        let letter = only_dead_letter(&node).await;
        assert!(matches!(node.engine.replay(letter.id, Some(Phase::Merge), &author()).await.unwrap(), Replayed::Queued(_)));
        for table in ["checkpoint", "step_cache"] {
            let keys = database.fetch(&format!("SELECT key FROM {table} ORDER BY key")).await;
            assert_eq!(keys, [["key of CHECK"], ["key of COLLECT"]], "{table}");
        }
        node.kill().await;
    }
}

fn pdf() -> EventDocument {
    EventDocument { format: Format::Pdf, url: "/protocol/1/document.pdf".to_owned(), bytes: 1, sha256: "0".repeat(64), pages: Some(1) }
}
