//! Connections that break in every way, while work is running: nothing is lost, nothing is done twice, and what cannot be stored ends.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Script, Setup, demo, endless, protocol, with_key},
    support::{
        TestDatabase, eventually, on_both_databases,
        postgres_proxy::{PostgresProxy, Spoil},
    },
};
use protocol_bridge::{
    domain::{
        failure::FailureCode,
        task::{AttemptOutcome, Kind, Phase, Progress, Status},
    },
    engine::{Decision, Done, Run, Step},
    store::{Dialect, Fault},
};

const HOLD: &str = "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'; \
     CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
     WHEN (OLD.status = 'PENDING' AND NEW.status = 'IN_PROGRESS') EXECUTE FUNCTION hold()";

fn short_leases(setup: Setup) -> Setup {
    setup.with_config(|config| (config.lease, config.heartbeat) = (4 * SECOND, SECOND))
}

async fn start(setup: Setup, database: &TestDatabase) -> Node {
    let db = setup.open(database).await;
    setup.start(database, &db)
}

/// Every connection is half open from one moment to the next. Renewals go on over a new one before the lease runs out.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_open_connection_costs_no_lease() {
    let database = TestDatabase::postgres().await;
    let proxy = PostgresProxy::start(&database.url).await;
    let node = start(short_leases(Setup::new()), &database.by_way_of(proxy.url(&database.url))).await;
    // It looks for leases that ran out, and takes nothing itself.
    let rescuer = {
        let mut setup = short_leases(Setup::new());
        setup.executors.clear();
        start(setup, &database).await
    };
    let task = node.submit(demo(r#"{"sleepMs":7000}"#)).await;
    node.reaches(task.id, Status::InProgress).await;
    proxy.half_open();
    let done = rescuer.reaches(task.id, Status::Completed).await;
    assert_eq!((done.claim_no, done.attempt_no), (1, 1));
    node.kill().await;
    rescuer.kill().await;
}

/// Nothing gets through any more: the attempt is stopped before its lease runs out in the database, so that whoever takes the task over is alone with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_cannot_renew_is_stopped_in_time() {
    let database = TestDatabase::postgres().await;
    let proxy = PostgresProxy::start(&database.url).await;
    let cut_off =
        start(short_leases(Setup::new()).with_executor(Kind::Protocol, endless()), &database.by_way_of(proxy.url(&database.url))).await;
    let task = cut_off.submit(protocol("a")).await;
    cut_off.reaches(task.id, Status::InProgress).await;
    proxy.black_hole();
    let other = start(short_leases(Setup::new()), &database).await;
    let taken_over = other.reaches(task.id, Status::Completed).await;
    assert_eq!((taken_over.claim_no, taken_over.attempt_no), (2, 2));
    let attempts = other.engine.attempts(task.id).await.unwrap();
    assert_eq!(attempts[0].outcome, Some(AttemptOutcome::WorkerLost));
    proxy.lift();
    eventually(LIMIT, "the node that was cut off is back", || async { cut_off.engine.task(task.id).await.is_ok() }).await;
    assert_eq!(other.task(task.id).await.status, Status::Completed, "what it did is not written");
    cut_off.kill().await;
    other.kill().await;
}

/// COMMITs that do not arrive, and COMMITs whose answer does not arrive, at whatever transaction comes next.
#[tokio::test(flavor = "multi_thread")]
async fn cuts_at_the_commit_lose_nothing_and_double_nothing() {
    const TASKS: usize = 40;
    let database = TestDatabase::postgres().await;
    let proxy = PostgresProxy::start(&database.url).await;
    let node = start(Setup::new(), &database.by_way_of(proxy.url(&database.url))).await;
    let mut ids = Vec::new();
    for number in 0..TASKS {
        proxy.spoil("COMMIT", if number % 2 == 0 { Spoil::Answer } else { Spoil::Request }, 1);
        let submission = with_key(demo(r#"{"sleepMs":5}"#), &format!("key {number}"), "same");
        // A caller that gets an error asks again under its key.
        let submitted = loop {
            if let Ok(submitted) = node.engine.submit(submission.clone(), None).await {
                break submitted;
            }
        };
        ids.push(submitted.task.id);
    }
    for id in ids {
        let task = node.reaches(id, Status::Completed).await;
        assert_eq!((task.claim_no, task.attempt_no), (1, 1), "{task:?}");
    }
    assert!(proxy.spoiled() >= TASKS as u64 / 2, "{} cuts", proxy.spoiled());
    let count = async |sql: &str| usize::try_from(database.number(sql).await).unwrap();
    assert_eq!(count("SELECT COUNT(*) FROM task").await, TASKS);
    assert_eq!(count("SELECT COUNT(*) FROM attempt WHERE outcome = 'completed'").await, TASKS);
    node.kill().await;
}

/// The connection is cut while the server is still committing a claim: whoever looks the claim up waits for that commit instead of reading past it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_looked_up_behind_its_commit() {
    let database = TestDatabase::postgres().await;
    let proxy = PostgresProxy::start(&database.url).await;
    let node = start(Setup::new(), &database.by_way_of(proxy.url(&database.url))).await;
    database.execute(HOLD).await;
    let mut holder = database.postgres_connection().await;
    sqlx::raw_sql("SELECT pg_advisory_lock(7)").execute(&mut holder).await.expect("it is free");
    let task = node.submit(demo("{}")).await;
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    eventually(LIMIT, "the claim's COMMIT waits", || async { database.number(waiting).await == 1 }).await;
    proxy.cut();
    let looking = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE'";
    eventually(LIMIT, "the look-up waits for the row", || async { database.number(looking).await >= 1 }).await;
    sqlx::raw_sql("SELECT pg_advisory_unlock(7)").execute(&mut holder).await.expect("it is ours");
    let task = node.reaches(task.id, Status::Completed).await;
    assert_eq!((task.claim_no, task.attempt_no), (1, 1));
    node.kill().await;
}

on_both_databases! {
    async fn a_checkpoint_that_can_never_be_stored_fails_the_task_at_once(database: TestDatabase) {
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(|run: Run| async move {
            let step = Step { name: "COLLECT/1".to_owned(), key: "key".to_owned(), output: "{}".to_owned() };
            let stored = run.checkpoint(Phase::Collect, Progress { done: 1, known: 2 }, vec![step]).await;
            assert!(stored.is_err(), "the attempt is told to stop");
            run.cancelled().cancelled().await;
            std::future::pending().await
        }));
        let db = setup.open(&database).await;
        database.execute(match database.dialect {
            Dialect::Sqlite => "CREATE TRIGGER refuse BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(ABORT, 'on purpose'); END",
            Dialect::Postgres => "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''on purpose''; END'; \
                CREATE TRIGGER refuse BEFORE INSERT ON checkpoint FOR EACH ROW EXECUTE FUNCTION refuse()",
        }).await;
        let node = setup.start(&database, &db);
        let task = node.submit(protocol("a")).await;
        let failed = node.reaches(task.id, Status::Failed).await;
        assert_eq!((failed.claim_no, failed.failure.expect("a failure").code), (1, FailureCode::Internal));
        node.kill().await;
    }

    async fn a_short_absence_of_the_database_costs_no_attempt(database: TestDatabase) {
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(|run: Run| async move {
            let step = Step { name: "COLLECT/1".to_owned(), key: "key".to_owned(), output: "{}".to_owned() };
            run.checkpoint(Phase::Collect, Progress { done: 1, known: 1 }, vec![step]).await.expect("stored in the end");
            Decision::Done(Done::default())
        }));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        for name in ["checkpoint", "finish_task"] {
            db.faults().arm(name, Fault::FailBefore, 3);
        }
        let task = node.submit(protocol("a")).await;
        let done = node.reaches(task.id, Status::Completed).await;
        assert_eq!((done.claim_no, done.attempt_no), (1, 1));
        node.kill().await;
    }
}
