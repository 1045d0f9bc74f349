//! What the janitor takes away when its time has come, and what it never does.

use crate::{
    engine_world::{Node, SECOND, Script, Setup, author, demo, metric, protocol, recorder, with_key},
    support::{TestDatabase, on_both_databases},
};
use futures::future::join;
use protocol_bridge::{
    domain::{
        failure::{Failure, FailureCode},
        ids::TaskId,
        task::{Kind, Status, Task},
    },
    engine::{Decision, Replayed, Run, Submission, Ticks},
    store::Dialect,
};
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);
const FAR: Duration = Duration::from_hours(24 * 1000);

/// Runs everything that is due to its end.
async fn run_all(node: &Node, ticks: &Ticks) {
    ticks.relay().await.unwrap();
    ticks.mark().await;
    ticks.consume().await.unwrap();
    crate::support::eventually(crate::engine_world::LIMIT, "nothing runs any more", || async { ticks.running() == 0 }).await;
    let _ = node;
}

async fn done(node: &Node, ticks: &Ticks, submission: Submission, status: Status) -> Task {
    let task = node.submit(submission).await;
    run_all(node, ticks).await;
    node.reaches(task.id, status).await
}

async fn is_there(node: &Node, id: TaskId) -> bool {
    node.engine.task(id).await.expect("readable").is_some()
}

/// The literal of an id.
fn id(database: &TestDatabase, id: impl Into<uuid::Uuid>) -> String {
    let id: uuid::Uuid = id.into();
    match database.dialect {
        Dialect::Sqlite => format!("x'{}'", id.simple()),
        Dialect::Postgres => format!("CAST('{id}' AS uuid)"),
    }
}

fn number(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// Tasks whose agenda is not there fail for good with that; demo tasks fail for good when their payload says so.
fn setup(seed: u64) -> Setup {
    Setup::still(seed)
        .with_executor(
            Kind::Protocol,
            Script::new(|_| async { Failure::new(FailureCode::AgendaNotFound, "There is no such agenda.").into() }),
        )
        .with_executor(
            Kind::Demo,
            Script::new(|run: Run| async move {
                if run.task().payload.contains("fail") && run.task().claim_no == 1 {
                    return Decision::Fail(Failure::new(FailureCode::Internal, "On purpose."));
                }
                Decision::Done(protocol_bridge::engine::Done::default())
            }),
        )
}

on_both_databases! {
    async fn a_finished_task_goes_after_90_days_with_all_that_is_its_own(database: TestDatabase) {
        recorder();
        let setup = setup(1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = done(&node, &ticks, demo("{}"), Status::Completed).await;
        let waiting = node.submit(Submission { run_at: Some(node.clock.now() + FAR + FAR), ..demo("{}") }).await;
        node.clock.advance((90 * DAY).saturating_sub(SECOND));
        ticks.clean().await.unwrap();
        assert!(is_there(&node, task.id).await, "its messages are gone, but not yet the task");
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NOT NULL").await, 0);
        assert_eq!(database.number("SELECT COUNT(*) FROM inbox").await, 0);
        node.clock.advance(2 * SECOND);
        assert_eq!(ticks.clean().await.unwrap(), 1);
        assert!(!is_there(&node, task.id).await);
        assert_eq!(database.number("SELECT COUNT(*) FROM attempt").await, 0);
        assert_eq!(metric(r#"retention_deleted_total{what="tasks"}"#), 1);
        // What has not finished stays, however old it is, and so does its message.
        node.clock.advance(FAR);
        assert_eq!(ticks.clean().await.unwrap(), 0);
        assert!(is_there(&node, waiting.id).await);
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 1);
    }

    async fn a_task_with_an_open_dead_letter_stays_until_it_is_replayed_but_not_for_an_answer_about_the_agenda(database: TestDatabase) {
        let setup = setup(2);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let failed = done(&node, &ticks, demo(r#""fail""#), Status::Failed).await;
        let unknown = done(&node, &ticks, protocol("unknown"), Status::Failed).await;
        node.clock.advance(FAR);
        ticks.clean().await.unwrap();
        assert!(!is_there(&node, unknown.id).await);
        assert!(is_there(&node, failed.id).await);
        let letters = node.engine.dead_letters(protocol_bridge::engine::DeadLetterFilter::default(), None, 10).await.unwrap().items;
        assert_eq!(letters.iter().map(|letter| letter.task_id).collect::<Vec<_>>(), [failed.id], "the other went with its task");
        assert_eq!(node.engine.attempts(failed.id).await.unwrap().len(), 1);
        assert!(matches!(node.engine.replay(letters[0].id, None, &author()).await.unwrap(), Replayed::Queued(_)), "it can still be replayed");
        run_all(&node, &ticks).await;
        node.reaches(failed.id, Status::Completed).await;
        ticks.clean().await.unwrap();
        assert!(is_there(&node, failed.id).await, "it has only just finished");
        node.clock.advance(91 * DAY);
        ticks.clean().await.unwrap();
        assert!(!is_there(&node, failed.id).await);
        assert_eq!(database.number("SELECT COUNT(*) FROM dead_letter").await, 0);
    }

    async fn a_task_stays_while_a_key_answers_with_it_or_somebody_has_still_to_be_told(database: TestDatabase) {
        let setup = setup(3).with_config(|config| config.retention_tasks = Duration::from_hours(1));
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let keyed = done(&node, &ticks, with_key(demo("{}"), "key", "same"), Status::Completed).await;
        let told = done(&node, &ticks, protocol("told"), Status::Failed).await;
        database.execute(&format!(
            "UPDATE event SET position = 1; INSERT INTO delivery (id, event_id, sink, lane, attempts, next_us, created_us) SELECT {}, id, 'sink', 'sink', 3, 5, 1 FROM event",
            id(&database, number(1)),
        ))
        .await;
        node.clock.advance((7 * DAY).saturating_sub(SECOND));
        ticks.clean().await.unwrap();
        assert!(is_there(&node, keyed.id).await && is_there(&node, told.id).await);
        let again = node.engine.submit(with_key(demo("{}"), "key", "same"), None).await.unwrap();
        assert_eq!((again.task.id, again.joined), (keyed.id, true));
        database.execute("UPDATE delivery SET delivered_us = 6, next_us = NULL").await;
        node.clock.advance(2 * SECOND);
        ticks.clean().await.unwrap();
        assert!(!is_there(&node, keyed.id).await && !is_there(&node, told.id).await);
        assert_eq!(database.number("SELECT COUNT(*) FROM idempotency_key").await, 0);
    }

    async fn an_event_goes_after_30_days_when_everybody_knows_it(database: TestDatabase) {
        let setup = setup(4);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        for agenda in ["unplaced", "pending", "delivered", "nobody"] {
            done(&node, &ticks, protocol(agenda), Status::Failed).await;
        }
        database.execute("UPDATE event SET position = LENGTH(agenda_id) WHERE agenda_id <> 'unplaced'").await;
        for (index, agenda, rest) in [(1, "pending", "NULL, 5"), (2, "delivered", "5, NULL")] {
            database.execute(&format!(
                "INSERT INTO delivery (id, event_id, sink, lane, attempts, created_us, delivered_us, next_us) \
                 SELECT {}, id, 'sink', 'sink', 1, 1, {rest} FROM event WHERE agenda_id = '{agenda}'",
                id(&database, number(index)),
            ))
            .await;
        }
        node.clock.advance((30 * DAY).saturating_sub(SECOND));
        ticks.clean().await.unwrap();
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 4);
        node.clock.advance(2 * SECOND);
        ticks.clean().await.unwrap();
        let left = database.fetch("SELECT agenda_id FROM event ORDER BY agenda_id").await;
        assert_eq!(left, [["pending"], ["unplaced"]]);
        assert_eq!(database.number("SELECT COUNT(*) FROM delivery").await, 1);
    }

    async fn messages_go_after_7_days_but_not_what_was_never_sent_nor_what_tells_its_duplicate(database: TestDatabase) {
        let setup = setup(5);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = done(&node, &ticks, demo("{}"), Status::Completed).await;
        let insert = |number, published: &str| format!(
            "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, published_us, created_us) \
             VALUES ({}, {}, 'ProcessTask', '', 9000000000000000, 0, {published}, 1);",
            id(&database, self::number(number)),
            id(&database, task.id.0),
        );
        let receive = |number| format!(
            "INSERT INTO inbox (message_id, task_id, received_us) VALUES ({}, {}, 1);",
            id(&database, self::number(number)),
            id(&database, task.id.0),
        );
        database.execute(&[insert(1, "NULL"), insert(2, "1"), receive(1), receive(2), receive(3)].concat()).await;
        ticks.clean().await.unwrap();
        let left = database.fetch("SELECT message_id FROM outbox WHERE created_us = 1").await;
        assert_eq!(left, [[self::number(1).to_string()]], "never sent");
        let left = database.fetch("SELECT message_id FROM inbox WHERE received_us = 1").await;
        assert_eq!(left, [[self::number(1).to_string()]], "it may come again");
        assert_eq!(database.number("SELECT COUNT(*) FROM inbox").await, 2, "the other is young");
    }

    async fn steps_protocols_and_counts(database: TestDatabase) {
        let setup = setup(6);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = done(&node, &ticks, demo(r#""fail""#), Status::Failed).await;
        let protocol = id(&database, number(7));
        database.execute(&format!(
            "INSERT INTO step_cache (key, output, created_us, used_us) VALUES ('used', '1', 1, 1), ('unused', '1', 1, 1); \
             INSERT INTO checkpoint (task_id, step, key, done_us) VALUES ({task}, 'COLLECT/agenda', 'used', 1); \
             INSERT INTO protocol (id, task_id, agenda_id, version, number, fingerprint, record, created_us) \
             VALUES ({protocol}, {protocol}, 'a', 1, '1', 'f', '{{}}', 1); \
             INSERT INTO document (protocol_id, format, blob, sha256, bytes) VALUES ({protocol}, 'pdf', 'b', 's', 1); \
             INSERT INTO legacy_call (caller, day, outcome, calls) \
             VALUES ('c', '2025-10-25', 'received', 1), ('c', '2025-10-26', 'received', 1), ('c', '2026-11-30', 'received', 1)",
            task = id(&database, task.id.0),
        ))
        .await;
        ticks.clean().await.unwrap();
        assert_eq!(database.fetch("SELECT key FROM step_cache").await, [["used"]]);
        assert_eq!(database.number("SELECT COUNT(*) FROM legacy_call").await, 2, "the day that is 400 days old is kept whole");
        node.clock.advance(FAR);
        ticks.clean().await.unwrap();
        assert_eq!(database.number("SELECT COUNT(*) FROM protocol").await + database.number("SELECT COUNT(*) FROM document").await, 2);
        assert_eq!(database.number("SELECT COUNT(*) FROM legacy_call").await, 0);
        assert_eq!(database.fetch("SELECT key FROM step_cache").await, [["used"]], "a replay would use it");
    }

    async fn a_row_that_cannot_be_deleted_stops_no_sweep_and_two_replicas_share_one(database: TestDatabase) {
        let setup = setup(8).with_config(|config| config.max_running = 400);
        let other = Setup { clock: setup.clock.clone(), ..self::setup(9) };
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let (other, its_ticks) = other.by_hand(&database, &db);
        for number in 0..300 {
            node.submit(Submission { client_reference: Some(if number == 7 { "kept" } else { "old" }.to_owned()), ..demo("{}") }).await;
        }
        node.clock.advance(SECOND);
        while ticks.claim_due().await.unwrap() > 0 {
            run_all(&node, &ticks).await;
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await, 300);
        database.execute(match database.dialect {
            Dialect::Sqlite => "CREATE TRIGGER refused BEFORE DELETE ON task WHEN OLD.client_reference = 'kept' BEGIN SELECT RAISE(ABORT, 'on purpose'); END",
            Dialect::Postgres => "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'on purpose'; END $$; \
                CREATE TRIGGER refused BEFORE DELETE ON task FOR EACH ROW WHEN (OLD.client_reference = 'kept') EXECUTE FUNCTION refuse()",
        })
        .await;
        node.clock.advance(FAR);
        let (mine, its) = join(ticks.clean(), its_ticks.clean()).await;
        mine.unwrap();
        its.unwrap();
        // What one of them held while the other looked is found by the next sweep.
        ticks.clean().await.unwrap();
        assert_eq!(database.fetch("SELECT client_reference FROM task").await, [["kept"]]);
        drop(other);
    }
}
