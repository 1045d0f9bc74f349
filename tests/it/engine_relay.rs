//! Messages: by state and never by cursor, sent again when it is not known that they were sent, in nobody's way when they cannot be, and not needed in the end.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, demo, metric, protocol, recorder},
    support::{TestDatabase, eventually, on_both_databases},
};
use futures::{FutureExt as _, future::BoxFuture};
use protocol_bridge::{
    domain::{
        envelope::Envelope,
        ids::{MessageId, TaskId},
        task::{Kind, Status},
    },
    engine::{
        Decision, Done, Run,
        transport::{Delivery, SendError, Transport},
    },
    store::{Dialect, Fault, outbox::Outgoing},
};
use sqlx::{AssertSqlSafe, Executor as _};
use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Notify;
use uuid::Uuid;

fn literal(dialect: Dialect, id: Uuid) -> String {
    match dialect {
        Dialect::Sqlite => format!("x'{}'", id.simple()),
        Dialect::Postgres => format!("'{id}'"),
    }
}

fn insert_message(dialect: Dialect, message_id: MessageId, task_id: TaskId, payload: &str) -> String {
    format!(
        "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, created_us) \
         VALUES ({}, {}, 'ProcessTask', '{payload}', 1, 0, 1)",
        literal(dialect, message_id.0),
        literal(dialect, task_id.0)
    )
}

/// Takes everything and delivers nothing.
#[derive(Debug)]
struct Losing;

impl Transport for Losing {
    fn name(&self) -> &'static str {
        "local"
    }

    fn room(&self) -> usize {
        usize::MAX
    }

    fn has_room(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        std::future::ready(messages.iter().map(|_| Ok(())).collect()).boxed()
    }

    fn receive(&self, _: usize) -> BoxFuture<'_, Vec<Delivery>> {
        std::future::pending().boxed()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

on_both_databases! {
    async fn a_row_that_commits_late_is_sent_all_the_same(database: TestDatabase) {
        let setup = Setup::still(1);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let mut waiting = demo("{}");
        waiting.run_at = Some(node.clock.now() + 5 * SECOND);
        let late = node.submit(waiting).await;
        // An id that sorts before all others, available since ever.
        let message_id = MessageId(Uuid::from_u128(7));
        let insert = insert_message(database.dialect, message_id, late.id, &Envelope::process_task(message_id, late.id, "{}").to_json());
        let mut open = None;
        if database.dialect == Dialect::Postgres {
            let mut connection = database.postgres_connection().await;
            connection.execute(AssertSqlSafe(format!("BEGIN; {insert}"))).await.unwrap();
            open = Some(connection);
        }
        for _ in 0..10 {
            let task = node.submit(demo("{}")).await;
            ticks.relay().await.unwrap();
            ticks.mark().await;
            assert_eq!(ticks.consume().await.unwrap(), 1);
            node.reaches(task.id, Status::Completed).await;
        }
        match open {
            Some(mut connection) => connection.execute("COMMIT").await.map(drop).unwrap(),
            // One writer: a row cannot commit late, only be written late.
            None => database.execute(&insert).await,
        }
        node.clock.advance(4 * SECOND);
        assert_eq!(ticks.relay().await.unwrap(), 1, "the late row");
        ticks.mark().await;
        let sent = node.engine.messages(late.id).await.unwrap();
        assert!(sent.iter().any(|message| message.message_id == message_id && message.published_at.is_some()), "{sent:?}");
    }

    async fn an_unsendable_row_is_put_off_and_blocks_nobody(database: TestDatabase) {
        let setup = Setup::still(2);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let (message_id, task_id) = (MessageId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(2)));
        database.execute(&insert_message(database.dialect, message_id, task_id, "rubbish")).await;
        for _ in 0..100 {
            node.submit(demo("{}")).await;
        }
        // What was handed over is lost with the relay that never ran; its claims run out.
        node.clock.advance(6 * SECOND);
        eventually(LIMIT, "the good ones are done", || async {
            ticks.relay().await.unwrap();
            ticks.mark().await;
            ticks.consume().await.unwrap();
            database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'").await == 100
        })
        .await;
        let poison = || async { node.engine.messages(task_id).await.unwrap().remove(0) };
        let put_off = poison().await;
        assert_eq!((put_off.send_attempts, put_off.published_at), (1, None));
        assert!(put_off.last_error.unwrap().contains("not an envelope"));
        assert_eq!(put_off.available_at, node.clock.now() + 2 * SECOND);
        node.clock.advance(2 * SECOND);
        assert_eq!(ticks.relay().await.unwrap(), 1);
        let put_off = poison().await;
        assert_eq!((put_off.send_attempts, put_off.available_at), (2, node.clock.now() + 4 * SECOND));
        assert_eq!(ticks.relay().await.unwrap(), 0, "it is left alone until then");
    }

    async fn a_mark_that_fails_after_the_send_costs_a_second_send_and_no_second_run(database: TestDatabase) {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(move || writer.clone()).init();
        recorder();
        let go_on = Arc::new(Notify::new());
        let runs = Arc::new(Mutex::new(0));
        let setup = {
            let (go_on, runs) = (Arc::clone(&go_on), Arc::clone(&runs));
            Setup::still(3).with_executor(Kind::Protocol, Script::new(move |_: Run| {
                *runs.lock().unwrap() += 1;
                let go_on = Arc::clone(&go_on);
                async move {
                    go_on.notified().await;
                    Decision::Done(Done::default())
                }
            }))
        };
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let task = node.submit(protocol("a")).await;
        db.faults().arm("relay_mark", Fault::FailBefore, 1);
        ticks.relay().await.unwrap();
        ticks.mark().await;
        assert_eq!(ticks.relay().await.unwrap(), 0, "the claim on the row still stands");
        node.clock.advance(6 * SECOND);
        assert_eq!(ticks.relay().await.unwrap(), 1, "sent a second time");
        ticks.mark().await;
        assert_eq!(ticks.consume().await.unwrap(), 1, "twice the same message");
        assert_eq!(metric("inbox_duplicates_total"), 1);
        assert_eq!(metric(r#"relay_published_total{transport="local"}"#), 2);
        go_on.notify_one();
        let task = node.reaches(task.id, Status::Completed).await;
        assert_eq!((task.claim_no, *runs.lock().unwrap()), (1, 1));
        let warned = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(warned, "", "nothing at WARN");
    }

    async fn killed_between_send_and_mark_it_is_sent_again_and_finished_once(database: TestDatabase) {
        let setup = Setup::still(4);
        let clock = setup.clock.clone();
        let db = setup.open(&database).await;
        let (first, ticks) = setup.by_hand(&database, &db);
        let task = first.submit(protocol("a")).await;
        ticks.relay().await.unwrap();
        let unmarked = "SELECT COUNT(*) FROM outbox WHERE published_us IS NULL";
        assert_eq!(database.number(unmarked).await, 1, "sent and not marked");
        first.kill().await;

        let (second, ticks) = Setup { clock: clock.clone(), ..Setup::still(5) }.by_hand(&database, &db);
        assert_eq!(ticks.relay().await.unwrap(), 0, "the dead one's claim on the row still stands");
        clock.advance(6 * SECOND);
        assert_eq!(ticks.relay().await.unwrap(), 1, "sent again");
        ticks.mark().await;
        assert_eq!(ticks.consume().await.unwrap(), 1);
        let task = second.reaches(task.id, Status::Completed).await;
        assert_eq!(task.claim_no, 1);
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1);
        assert_eq!(database.number(unmarked).await, 0);
    }

    async fn a_transport_that_loses_everything_loses_no_task(database: TestDatabase) {
        let setup = Setup::new().with_transport(Arc::new(Losing));
        let db = setup.open(&database).await;
        // A claim whose answer is lost is found by its token, here too.
        db.faults().arm("claim_tasks", Fault::FailAfter, 1);
        let node = setup.start(&database, &db);
        let mut ids = Vec::new();
        for _ in 0..30 {
            ids.push(node.submit(demo(r#"{"failUntilAttempt":0}"#)).await.id);
        }
        for id in ids {
            let task = node.reaches(id, Status::Completed).await;
            assert_eq!(task.claim_no, 1);
        }
        assert_eq!(database.number("SELECT COUNT(*) FROM inbox").await, 30, "late messages would be duplicates");
        assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0);
        node.kill().await;
    }

    async fn an_idle_engine_picks_up_at_once(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let mut waits = Vec::new();
        for _ in 0..30 {
            let task = node.submit(demo("{}")).await;
            let task = node.reaches(task.id, Status::Completed).await;
            waits.push(task.started_at.unwrap().since(task.created_at));
        }
        waits.sort();
        // The budget is 5 ms on a machine of its own; the poll behind it is a second.
        assert!(waits[15] < Duration::from_millis(200), "{waits:?}");
        node.kill().await;
    }
}

/// A row whose transaction commits after younger ones were sent is sent all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_commits_late_is_sent() {
    let database = TestDatabase::postgres().await;
    let setup = Setup::still(40);
    let db = setup.open(&database).await;
    let (node, ticks) = setup.by_hand(&database, &db);
    let us = node.clock.now().as_micros();
    let late = format!(
        "BEGIN; INSERT INTO task (id, kind, payload, status, claim_no, attempt_no, max_attempts, run_at_us, next_attempt_us, steps_done, \
         steps_known, caller, revision, created_us) VALUES ('00000000-0000-7000-8000-000000000001', 'demo', '{{}}', 'PENDING', 0, 0, 5, {us}, {us}, 0, 0, \
         'test', 1, {us}); \
         INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, created_us) VALUES \
         ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'ProcessTask', \
         '{{\"messageId\":\"00000000-0000-7000-8000-000000000002\",\"taskId\":\"00000000-0000-7000-8000-000000000001\",\"envelopeType\":\"ProcessTask\",\"payloadJson\":\"{{}}\"}}', \
         {us}, 0, {us})"
    );
    let mut session = database.postgres_connection().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(late)).execute(&mut session).await.expect("it is inserted");
    node.clock.advance(SECOND);
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(node.submit(demo("{}")).await.id);
    }
    ticks.relay().await.unwrap();
    ticks.mark().await;
    let unsent = "SELECT COUNT(*) FROM outbox WHERE published_us IS NULL";
    assert_eq!(database.number(unsent).await, 0, "the ten are sent");
    sqlx::raw_sql("COMMIT").execute(&mut session).await.expect("it commits");
    assert_eq!(database.number(unsent).await, 1);
    assert_eq!(ticks.relay().await.unwrap(), 1, "found by its state, not by its place");
    ticks.mark().await;
    assert_eq!(database.number(unsent).await, 0);
    ticks.consume().await.unwrap();
    node.reaches("00000000-0000-7000-8000-000000000001".parse().unwrap(), Status::Completed).await;
}

/// Fifty submitters whose commits take their time, in no order.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_order_commits_come_in_everything_is_sent() {
    const EACH: usize = 20;
    let database = TestDatabase::postgres().await;
    let setup = Setup::new();
    let db = setup.open(&database).await;
    database
        .execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(random() * 0.05); RETURN NULL; END'; \
             CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()",
        )
        .await;
    let node = setup.start(&database, &db);
    let submitters = (0..50).map(|_| async {
        for _ in 0..EACH {
            node.submit(demo("{}")).await;
        }
    });
    futures::future::join_all(submitters).await;
    let completed = "SELECT COUNT(*) FROM task WHERE status = 'COMPLETED'";
    eventually(LIMIT, "everything has run", || async { database.number(completed).await == 50 * i64::try_from(EACH).unwrap() }).await;
    eventually(LIMIT, "everything is marked", || async {
        database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await == 0
    })
    .await;
    assert_eq!(database.number("SELECT COUNT(*) FROM attempt").await, 50 * i64::try_from(EACH).unwrap(), "each once");
    node.kill().await;
}
