//! What is changed by hand: the audit entry commits with the change or neither does, and a pause holds everywhere.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, author, demo, endless, metric, protocol, recorder},
    support::{TestDatabase, eventually, on_both_databases},
};
use protocol_bridge::{
    base::clock::Clock,
    domain::{
        failure::{Failure, FailureCode},
        task::{Kind, Status},
    },
    engine::{AuditFilter, Cancelled, DeadLetterFilter, Dismissed, Replayed},
    store::Fault,
};

on_both_databases! {
    async fn there_is_no_change_without_its_entry_and_no_entry_without_its_change(database: TestDatabase) {
        let setup = Setup::still(1).with_executor(Kind::Protocol, Script::new(|_| async { Failure::new(FailureCode::AgendaNotReady, "Not signed.").into() }));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let failed = node.submit(protocol("a")).await;
        ticks.claim_due().await.unwrap();
        node.reaches(failed.id, Status::Failed).await;
        let waiting = node.submit(demo("{}")).await;
        let letter = node.engine.dead_letters(DeadLetterFilter::default(), None, 1).await.unwrap().items.remove(0);
        // A table that takes no entries: the change is not made either.
        database.execute("ALTER TABLE audit RENAME TO audit_elsewhere").await;
        assert!(node.engine.cancel(waiting.id, &author()).await.is_err());
        assert!(node.engine.replay(letter.id, None, &author()).await.is_err());
        assert!(node.engine.dismiss(letter.id, &author()).await.is_err());
        assert!(node.engine.pause(&author()).await.is_err());
        database.execute("ALTER TABLE audit_elsewhere RENAME TO audit").await;
        assert_eq!(node.task(waiting.id).await.status, Status::Pending);
        assert_eq!(node.task(failed.id).await.status, Status::Failed);
        assert_eq!(database.number("SELECT COUNT(*) FROM dead_letter WHERE replayed_us IS NULL AND dismissed_us IS NULL").await, 1);
        assert_eq!(database.number("SELECT COUNT(*) FROM setting WHERE name = 'engine.paused'").await, 0);
        assert!(matches!(node.engine.dismiss(letter.id, &author()).await.unwrap(), Dismissed::Closed(_)));
        assert!(matches!(node.engine.replay(letter.id, None, &author()).await.unwrap(), Replayed::Queued(_)));
        assert!(matches!(node.engine.cancel(waiting.id, &author()).await.unwrap(), Cancelled::Now(_)));
        // Asked twice, done once.
        for _ in 0..2 {
            node.engine.pause(&author()).await.unwrap();
        }
        for _ in 0..2 {
            node.engine.resume(&author()).await.unwrap();
        }
        assert!(matches!(node.engine.cancel(waiting.id, &author()).await.unwrap(), Cancelled::Before(_)));
        let entries = node.engine.audit(AuditFilter::default(), None, 10).await.unwrap().items;
        let mut actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
        actions.sort_unstable();
        assert_eq!(actions, ["dead-letter.dismiss", "dead-letter.replay", "engine.pause", "engine.resume", "task.cancel"]);
    }

    async fn a_pause_stops_claiming_on_every_node_and_over_a_restart_and_what_runs_goes_on(database: TestDatabase) {
        recorder();
        let clock = Clock::manual(crate::engine_world::start_of_time());
        let setup = |seed| {
            let mut setup = Setup::still(seed).with_executor(Kind::Protocol, endless());
            setup.clock = clock.clone();
            setup
        };
        let db = setup(1).open(&database).await;
        let (one, its_ticks) = setup(2).by_hand(&database, &db);
        let (other, other_ticks) = setup(3).by_hand(&database, &db);
        let running = one.submit(protocol("runs")).await;
        assert_eq!(its_ticks.claim_due().await.unwrap(), 1);
        let first = other.engine.pause(&author()).await.unwrap();
        clock.advance(SECOND);
        assert_eq!(one.engine.pause(&author()).await.unwrap(), first, "it has been so since the first");
        let waiting = one.submit(demo("{}")).await;
        for ticks in [&its_ticks, &other_ticks] {
            assert_eq!(ticks.claim_due().await.unwrap(), 0);
            ticks.relay().await.unwrap();
            assert_eq!(ticks.consume().await.unwrap(), 0);
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM inbox WHERE task_id IN (SELECT id FROM task WHERE kind = 'demo')").await, 0, "its message was not taken");
        assert!(one.engine.paused().is_some() && other.engine.paused().is_some(), "whoever tried knows");
        let (restarted, fresh_ticks) = setup(4).by_hand(&database, &db);
        assert_eq!(fresh_ticks.claim_due().await.unwrap(), 0, "over a restart");
        its_ticks.renew().await.unwrap();
        fresh_ticks.count().await.unwrap();
        eventually(LIMIT, "the gauge says it", || async { metric("engine_paused") == 1 }).await;
        assert_eq!((one.task(running.id).await.status, its_ticks.running()), (Status::InProgress, 1), "what runs goes on");
        restarted.engine.resume(&author()).await.unwrap();
        assert_eq!(other_ticks.claim_due().await.unwrap(), 1);
        other.reaches(waiting.id, Status::Completed).await;
        assert_eq!((metric("engine_paused"), other.engine.paused()), (0, None));
        one.engine.cancel(running.id, &author()).await.unwrap();
    }

    async fn a_paused_engine_goes_on_by_itself_when_it_is_resumed_elsewhere(database: TestDatabase) {
        let setup = Setup::new;
        let db = setup().open(&database).await;
        let node = setup().start(&database, &db);
        let (other, _ticks) = setup().by_hand(&database, &db);
        other.engine.pause(&author()).await.unwrap();
        let task = node.submit(demo("{}")).await;
        eventually(LIMIT, "it has met the pause", || async { node.engine.paused().is_some() }).await;
        assert_eq!(node.task(task.id).await.status, Status::Pending);
        // A look that fails changes nothing.
        db.faults().arm("pause", Fault::FailBefore, 1);
        eventually(LIMIT, "it looked", || async { node.engine.paused().is_some() }).await;
        db.faults().disarm("pause");
        other.engine.resume(&author()).await.unwrap();
        node.reaches(task.id, Status::Completed).await;
        node.kill().await;
    }
}
