//! What goes together in one transaction, and what one of it cannot do to the others.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, demo, metric, recorder},
    support::{TestDatabase, eventually, on_both_databases},
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use protocol_bridge::{
    domain::task::{Kind, Status},
    engine::{
        Decision, Done, Submission, TaskExecutor,
        transport::{Delivery, Local, SendError, Transport},
    },
    store::{Dialect, Fault, outbox::Outgoing},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// Work that is done when the gate opens.
fn gated(gate: &watch::Sender<bool>) -> Arc<dyn TaskExecutor> {
    let opened = gate.subscribe();
    Script::new(move |_| {
        let mut opened = opened.clone();
        async move {
            opened.wait_for(|open| *open).await.expect("the test holds the gate");
            Decision::Done(Done::default())
        }
    })
}

/// A transport that counts what it had no room for.
#[derive(Debug)]
struct Narrow {
    local: Local,
    refused: AtomicUsize,
}

impl Transport for Narrow {
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
        async move {
            let answers = self.local.send(messages).await;
            self.refused.fetch_add(answers.iter().filter(|answer| answer.is_err()).count(), Ordering::Relaxed);
            answers
        }
        .boxed()
    }

    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>> {
        self.local.receive(limit)
    }
}

fn named(reference: &str) -> Submission {
    Submission { client_reference: Some(reference.to_owned()), ..demo("{}") }
}

on_both_databases! {
    async fn attempts_that_end_together_are_written_together_and_one_that_lost_its_task_takes_nothing_from_the_others(database: TestDatabase) {
        recorder();
        let gate = watch::Sender::new(false);
        let setup = Setup::new().with_executor(Kind::Demo, gated(&gate)).with_config(|config| config.max_running = 64);
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        for number in 0..40 {
            node.submit(named(if number % 10 == 0 { "lost" } else { "kept" })).await;
        }
        let running = "SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'";
        eventually(LIMIT, "all run", || async { database.number(running).await == 40 }).await;
        // Somebody else has taken these, and this process does not know it yet.
        let stranger = match database.dialect {
            Dialect::Sqlite => "x'00000000000000000000000000000001'",
            Dialect::Postgres => "CAST('00000000-0000-0000-0000-000000000001' AS uuid)",
        };
        database.execute(&format!("UPDATE task SET lease_token = {stranger} WHERE client_reference = 'lost'")).await;
        // The first commit takes a moment; whatever ends meanwhile goes into the next.
        db.faults().arm("finish_task", Fault::Delay(SECOND / 2), 1);
        gate.send_replace(true);
        let completed = "SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'";
        eventually(LIMIT, "the others have ended", || async { database.number(completed).await == 36 }).await;
        assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS' AND client_reference = 'lost'").await, 4);
        assert_eq!(database.number("SELECT COUNT(*) FROM attempt WHERE outcome = 'completed'").await, 36);
        eventually(LIMIT, "the losers know", || async { metric("leases_lost_total") == 4 }).await;
        assert!(metric(r#"db_transaction_seconds_count{name="finish_task"}"#) <= 4, "not one for each");
        node.kill().await;
    }

    async fn an_end_that_cannot_be_stored_keeps_no_other_from_ending(database: TestDatabase) {
        let gate = watch::Sender::new(false);
        let setup = Setup::new().with_executor(Kind::Demo, gated(&gate)).with_config(|config| config.retry_base = Duration::from_hours(1));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let bad = node.submit(named("bad")).await;
        for _ in 0..9 {
            node.submit(named("good")).await;
        }
        let running = "SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'";
        eventually(LIMIT, "all run", || async { database.number(running).await == 10 }).await;
        database.execute(match database.dialect {
            Dialect::Sqlite => "CREATE TRIGGER refused BEFORE UPDATE ON task WHEN NEW.client_reference = 'bad' AND NEW.status = 'COMPLETED' \
                BEGIN SELECT RAISE(ABORT, 'on purpose'); END",
            Dialect::Postgres => "ALTER TABLE task ADD CONSTRAINT refused CHECK (client_reference <> 'bad' OR status <> 'COMPLETED')",
        })
        .await;
        db.faults().arm("finish_task", Fault::Delay(SECOND / 4), 1);
        gate.send_replace(true);
        let completed = "SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'";
        eventually(LIMIT, "the others have ended", || async { database.number(completed).await == 9 }).await;
        let task = node.claimed(bad.id, 1, Status::Pending).await;
        assert_eq!(task.last_error.as_deref(), Some("The result could not be stored."));
        node.kill().await;
    }

    async fn damaged_rows_that_are_due_longest_stand_before_nobody(database: TestDatabase) {
        let setup = Setup::still(1).with_config(|config| config.max_running = 4);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        for _ in 0..20 {
            node.submit(named("damaged")).await;
        }
        database.execute("UPDATE task SET attempt_no = -9").await;
        node.clock.advance(SECOND);
        let good = [node.submit(named("good")).await, node.submit(named("good")).await];
        for look in 0..2 {
            assert_eq!(ticks.claim_due().await.unwrap(), if look == 0 { 2 } else { 0 });
        }
        for task in good {
            node.reaches(task.id, Status::Completed).await;
        }
        // Somebody mends them; a minute later they are tried again.
        database.execute("UPDATE task SET attempt_no = 0 WHERE client_reference = 'damaged'").await;
        assert_eq!(ticks.claim_due().await.unwrap(), 0);
        node.clock.advance(61 * SECOND);
        assert_eq!(ticks.claim_due().await.unwrap(), 4);
        node.kill().await;
    }

    async fn no_more_is_sent_than_there_is_room_for(database: TestDatabase) {
        let gate = watch::Sender::new(false);
        let transport = Arc::new(Narrow { local: Local::new(4), refused: AtomicUsize::new(0) });
        let setup = Setup::new()
            .with_executor(Kind::Demo, gated(&gate))
            .with_config(|config| config.max_running = 1)
            .with_transport(Arc::clone(&transport) as Arc<dyn Transport>);
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        for _ in 0..3 {
            join_all((0..10).map(|_| node.submit(named("x")))).await;
        }
        gate.send_replace(true);
        let completed = "SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'";
        eventually(LIMIT, "all have ended", || async { database.number(completed).await == 30 }).await;
        assert_eq!(transport.refused.load(Ordering::Relaxed), 0, "what is refused waits for its claim to run out");
        node.kill().await;
    }

    async fn a_damaged_message_is_put_off_and_the_others_are_sent(database: TestDatabase) {
        let setup = Setup::still(1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let damaged = node.submit(named("damaged")).await;
        let good = node.submit(named("good")).await;
        // Only SQLite lets a column hold what is not of its type; elsewhere an empty text stands for it.
        let payload = if database.dialect == Dialect::Sqlite { "x'ff'" } else { "''" };
        database.execute(&format!(
            "UPDATE outbox SET payload = {payload}, available_us = 1 WHERE task_id = (SELECT id FROM task WHERE client_reference = 'damaged')"
        ))
        .await;
        database.execute("UPDATE outbox SET claim_token = NULL, claim_until_us = NULL").await;
        assert_eq!(ticks.relay().await.unwrap(), 2);
        assert_eq!(database.number("SELECT send_attempts FROM outbox ORDER BY send_attempts DESC LIMIT 1").await, 1);
        assert!(ticks.consume().await.unwrap() >= 1);
        node.reaches(good.id, Status::Completed).await;
        // The table has it all the same.
        node.clock.advance(SECOND);
        ticks.claim_due().await.unwrap();
        node.reaches(damaged.id, Status::Completed).await;
        node.kill().await;
    }
}
