//! Time: on PostgreSQL it is the database's, whatever the machines' own clocks say.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Setup, demo},
    support::{TestDatabase, eventually},
};
use protocol_bridge::{
    base::clock::{Clock, Followed},
    domain::{
        ids::TaskId,
        task::{AttemptOutcome, Status, Task},
        time::Timestamp,
    },
    engine::Submission,
};
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

/// A node on a machine whose wall clock says `wall`, with leases short enough to be judged in a test.
async fn node(database: &TestDatabase, wall: Timestamp, works: bool) -> Node {
    let mut setup = Setup::new().with_config(|config| {
        (config.lease, config.heartbeat, config.retry_base) = (2 * SECOND, SECOND / 2, SECOND);
    });
    setup.clock = Clock::with_wall(wall);
    if !works {
        setup.executors.clear();
    }
    let db = setup.open(database).await;
    setup.start(database, &db)
}

fn at(run_at: Timestamp, payload: &str) -> Submission {
    Submission { run_at: Some(run_at), ..demo(payload) }
}

async fn completed(node: &Node, id: TaskId) -> Task {
    node.reaches(id, Status::Completed).await
}

/// The first machine only takes work in, and is an hour ahead; those that do the work are an hour behind and right.
#[tokio::test(flavor = "multi_thread")]
async fn machines_that_are_an_hour_off_run_nothing_early_late_or_twice() {
    let database = TestDatabase::postgres().await;
    let right = Clock::system();
    let ahead = node(&database, right.now() + HOUR, false).await;
    let behind = node(&database, right.now() - HOUR, true).await;
    let exact = node(&database, right.now(), true).await;
    for other in [&behind, &exact] {
        let (earlier, later) = (ahead.clock.now(), other.clock.now());
        assert!(later.since(earlier) < SECOND && earlier.since(later) < SECOND, "{earlier} and {later}");
    }

    let run_at = ahead.clock.now() + 2 * SECOND;
    let mut later = Vec::new();
    for submitter in [&ahead, &behind, &exact] {
        later.push(submitter.submit(at(run_at, "{}")).await.id);
        assert_eq!(submitter.task(*later.last().unwrap()).await.run_at, run_at);
    }
    // It runs for longer than its lease, under the eyes of three rescuers.
    let mut long = Vec::new();
    for _ in 0..4 {
        long.push(ahead.submit(demo(r#"{"sleepMs":3000}"#)).await.id);
    }
    let fails_once = ahead.submit(demo(r#"{"failUntilAttempt":2}"#)).await.id;

    for id in later {
        let task = completed(&ahead, id).await;
        let started = ahead.engine.attempts(id).await.unwrap()[0].started_at;
        assert!(started >= run_at && started < run_at + LIMIT, "to run at {run_at}, ran at {started}");
        assert_eq!(task.claim_no, 1);
    }
    for id in long {
        assert_eq!(completed(&ahead, id).await.claim_no, 1, "its lease was renewed and seen to be");
    }
    completed(&ahead, fails_once).await;
    let attempts = ahead.engine.attempts(fails_once).await.unwrap();
    assert_eq!(
        attempts.iter().map(|attempt| attempt.outcome.unwrap()).collect::<Vec<_>>(),
        [AttemptOutcome::Retried, AttemptOutcome::Completed]
    );
    let waited = attempts[1].started_at.since(attempts[0].ended_at.unwrap());
    assert!(waited >= SECOND && waited < LIMIT, "the retry came after {waited:?}");
    for node in [ahead, behind, exact] {
        node.kill().await;
    }
}

/// The database's clock is set while a node runs: forward it is followed at once, back by standing still, and back by an hour at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_clock_is_set_is_followed_and_time_does_not_go_back() {
    let database = TestDatabase::postgres().await;
    // A clock in the database that the test can set stands before the real one.
    let name = database.url.rsplit('/').next().unwrap();
    database
        .execute(&format!(
            "CREATE TABLE clock_is_off (by_s BIGINT); INSERT INTO clock_is_off VALUES (0); \
             CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
             $$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => by_s) FROM clock_is_off $$; \
             ALTER DATABASE {name} SET search_path = public, pg_catalog"
        ))
        .await;
    let mut setup = Setup::new();
    setup.clock = Clock::with_wall("2001-01-01T00:00:00Z".parse().unwrap());
    let db = setup.open(&database).await;
    let (node, ticks) = setup.by_hand(&database, &db);
    let set = async |by_s: i64| {
        let before = node.clock.now();
        database.execute(&format!("UPDATE clock_is_off SET by_s = {by_s}")).await;
        (before, ticks.measure_time().await.unwrap(), node.clock.now())
    };
    let (before, ..) = set(0).await;
    assert!(Clock::system().now().since(before) < LIMIT, "it was set when the store was opened: {before}");
    let (before, followed, after) = set(20).await;
    assert!(matches!(followed, Followed::Forward(by) if by > 19 * SECOND), "{followed:?}");
    assert!(after >= before + 19 * SECOND);
    let (before, followed, after) = set(18).await;
    assert!(matches!(followed, Followed::Held(by) if by > SECOND), "{followed:?}");
    assert!(after >= before && after < before + SECOND, "{before}, then {after}");
    eventually(LIMIT, "time goes on", || async { node.clock.now() > after }).await;
    let (before, followed, after) = set(-3600).await;
    assert!(matches!(followed, Followed::Back(by) if by > HOUR), "{followed:?}");
    assert!(after < before - HOUR + LIMIT, "{before}, then {after}");
}
