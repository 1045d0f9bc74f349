//! Events and their positions: given after the commit, without gaps, visible in their order, whoever gives them and however late a commit comes.

use crate::{
    engine_world::{LIMIT, Script, Setup, author, demo, endless, protocol},
    support::{TestDatabase, eventually, on_both_databases, within},
};
use futures::future::join_all;
use protocol_bridge::{
    domain::{
        event::{CloudEvent, CompletedData, EndedData, EventType},
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        task::{Kind, Status},
    },
    engine::{Decision, Follow, Follower, Run},
    store::Fault as Injected,
};
use std::{collections::HashSet, time::Duration};

const UNPLACED: &str = "SELECT COUNT(*) FROM event WHERE position IS NULL";

fn from_the_start() -> Follow {
    Follow { after: Some(0), ..Follow::default() }
}

/// The next events' positions and agendas.
async fn told(follower: &mut Follower, count: usize) -> Vec<(i64, String)> {
    let mut told = Vec::new();
    for _ in 0..count {
        let event = within(LIMIT, "the next event", follower.next()).await.expect("the feed runs");
        told.push((event.position.expect("placed"), event.agenda_id.to_string()));
    }
    told
}

on_both_databases! {
    async fn every_end_of_a_protocol_task_is_an_event_with_its_place(database: TestDatabase) {
        let setup = Setup::new().with_executor(Kind::Protocol, Script::new(|run: Run| async move {
            if run.task().payload.contains("bad") {
                let errors = vec![Fault { code: "x".to_owned(), pointer: "/title".to_owned(), detail: "Нет названия".to_owned() }];
                return Decision::Fail(Failure::new(FailureCode::AgendaInvalid, "Повестка противоречива 🗳").with_errors(errors));
            }
            if run.task().payload.contains("long") {
                run.cancelled().cancelled().await;
            }
            Decision::Done(protocol_bridge::engine::Done::default())
        }));
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let mut follower = node.engine.follow(Follow::default()).await.unwrap();
        let good = node.submit(protocol("good")).await;
        assert_eq!(told(&mut follower, 1).await, [(1, "good".to_owned())]);
        node.submit(demo("{}")).await;
        let bad = node.submit(protocol("bad")).await;
        assert_eq!(told(&mut follower, 1).await, [(2, "bad".to_owned())]);
        let long = node.submit(protocol("long")).await;
        node.reaches(long.id, Status::InProgress).await;
        node.engine.cancel(long.id, &author()).await.unwrap();
        assert_eq!(told(&mut follower, 1).await, [(3, "long".to_owned())]);
        let bodies = database.fetch("SELECT body FROM event ORDER BY position").await;
        let text = |row: usize| bodies[row][0].as_str().expect("a text").to_owned();
        let completed: CloudEvent<CompletedData> = serde_json::from_str(&text(0)).unwrap();
        assert_eq!((completed.kind.as_str(), completed.data.as_ref().unwrap().task_id), (EventType::Completed.as_str(), good.id));
        let failed: CloudEvent<EndedData> = serde_json::from_str(&text(1)).unwrap();
        let data = failed.data.as_ref().unwrap();
        assert_eq!((failed.kind.as_str(), data.task_id), (EventType::Failed.as_str(), bad.id));
        assert_eq!(data.failure.as_ref().unwrap().errors[0].detail, "Нет названия");
        let cancelled: CloudEvent<EndedData> = serde_json::from_str(&text(2)).unwrap();
        assert_eq!((cancelled.kind.as_str(), cancelled.subject.as_str()), (EventType::Cancelled.as_str(), "long"));
        assert_eq!(cancelled.data.unwrap().failure.unwrap().code, FailureCode::Cancelled);
        node.kill().await;
    }

    async fn a_follower_begins_where_it_left_off_and_hears_its_agenda_only(database: TestDatabase) {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        for round in 0..130 {
            node.submit(protocol(&format!("a{}", round % 13))).await;
            if round % 13 == 12 {
                // An agenda has one active task.
                eventually(LIMIT, "they are placed", || async {
                    database.number("SELECT COUNT(*) FROM event WHERE position IS NOT NULL").await == round + 1
                })
                .await;
            }
        }
        let mut all = node.engine.follow(from_the_start()).await.unwrap();
        let positions: Vec<i64> = told(&mut all, 130).await.into_iter().map(|(position, _)| position).collect();
        assert_eq!(positions, (1..=130).collect::<Vec<_>>());
        let mut rest = node.engine.follow(Follow { after: Some(127), ..Follow::default() }).await.unwrap();
        assert_eq!(told(&mut rest, 3).await.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [128, 129, 130]);
        let agenda: AgendaId = "a3".parse().unwrap();
        let mut one = node.engine.follow(Follow { agenda: Some(agenda), ..from_the_start() }).await.unwrap();
        assert_eq!(told(&mut one, 10).await.iter().map(|(_, agenda)| agenda.as_str()).collect::<HashSet<_>>(), HashSet::from(["a3"]));
        // A position that this database never gave: everything that is kept.
        let mut lost = node.engine.follow(Follow { after: Some(9_000), ..Follow::default() }).await.unwrap();
        assert_eq!(told(&mut lost, 1).await[0].0, 1);
        // And on with what is new.
        node.submit(protocol("a3")).await;
        assert_eq!(told(&mut one, 1).await, [(131, "a3".to_owned())]);
        assert_eq!(told(&mut all, 1).await[0].0, 131);
        node.kill().await;
    }

    async fn positions_are_given_once_whatever_fails_in_between(database: TestDatabase) {
        let setup = Setup::still(50);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        for number in 0..3 {
            node.submit(protocol(&format!("a{number}"))).await;
        }
        ticks.relay().await.unwrap();
        ticks.consume().await.unwrap();
        eventually(LIMIT, "all have ended", || async { database.number(UNPLACED).await == 3 }).await;
        for (fault, left) in [(Injected::FailBefore, 3), (Injected::FailAfter, 0)] {
            db.faults().arm("place_events", fault, 1);
            ticks.place().await.unwrap_err();
            assert_eq!(database.number(UNPLACED).await, left);
        }
        assert_eq!(ticks.place().await.unwrap(), 0);
        let positions = database.fetch("SELECT position FROM event ORDER BY created_us, id").await;
        let mut numbers: Vec<i64> = positions.iter().map(|row| row[0].as_i64().expect("placed")).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
        drop(node);
    }
}

/// An event whose transaction commits after younger ones were placed gets a later position, and a follower that was past them hears it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_replayed_all_the_same() {
    let database = TestDatabase::postgres().await;
    let setup = Setup::new();
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let mut session = database.postgres_connection().await;
    let late = "BEGIN; INSERT INTO event (id, type, task_id, agenda_id, body, created_us) VALUES ('00000000-0000-7000-8000-000000000001', \
        'ObesrabuoProtocolGenerationCompleted', '00000000-0000-7000-8000-000000000002', 'late', '{}', 1)";
    sqlx::raw_sql(late).execute(&mut session).await.expect("it is inserted");
    let mut follower = node.engine.follow(Follow::default()).await.unwrap();
    for number in 0..10 {
        node.submit(protocol(&format!("a{number}"))).await;
    }
    assert_eq!(told(&mut follower, 10).await.last().expect("ten").0, 10);
    sqlx::raw_sql("COMMIT").execute(&mut session).await.expect("it commits");
    assert_eq!(told(&mut follower, 1).await, [(11, "late".to_owned())], "told by the one that is connected");
    let mut again = node.engine.follow(Follow { after: Some(10), ..Follow::default() }).await.unwrap();
    assert_eq!(told(&mut again, 1).await, [(11, "late".to_owned())], "and by a replay");
    node.kill().await;
}

/// Several replicas give positions at once, while ends commit in no order; each hears everything once and in order.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_counter() {
    const EACH: usize = 100;
    let database = TestDatabase::postgres().await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        nodes.push(setup.start(&database, &db));
    }
    let mut followers = Vec::new();
    for node in &nodes {
        followers.push(node.engine.follow(Follow::default()).await.unwrap());
    }
    let submissions = nodes.iter().enumerate().map(|(number, node)| async move {
        for round in 0..EACH {
            node.submit(protocol(&format!("a{number}-{round}"))).await;
        }
    });
    join_all(submissions).await;
    let wanted: Vec<i64> = (1..=3 * i64::try_from(EACH).unwrap()).collect();
    for follower in &mut followers {
        let positions: Vec<i64> = told(follower, 3 * EACH).await.into_iter().map(|(position, _)| position).collect();
        assert_eq!(positions, wanted);
    }
    for node in nodes {
        node.kill().await;
    }
}

/// What a drain lets finish is placed before the process ends.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_end_of_a_draining_process_gets_its_position() {
    let database = TestDatabase::sqlite().await;
    let setup = Setup::new().with_executor(Kind::Protocol, endless());
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let task = node.submit(protocol("last")).await;
    node.reaches(task.id, Status::InProgress).await;
    node.shutdown.begin();
    node.engine.cancel(task.id, &author()).await.unwrap();
    within(Duration::from_secs(20), "the process has drained", async {
        node.engine.hub().drain();
        node.shutdown.finished().await;
    })
    .await;
    assert_eq!(database.number(UNPLACED).await, 0);
}
