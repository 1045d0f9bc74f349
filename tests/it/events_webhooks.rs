//! Webhooks: signed, tried on their schedule, one slow receiver never in another's way, given up and begun anew; nothing lost and nothing told twice under two names.

use crate::{
    engine_world::{LIMIT, Node, SECOND, Setup, author, metric, protocol, recorder},
    support::{
        TestDatabase, eventually, on_both_databases,
        receivers::{Manner, Receiver, verified_by_python},
    },
};
use protocol_bridge::{
    domain::{
        delivery::{Sink, State},
        event::EventType,
        task::Status,
    },
    engine::{Change, DeliveryFilter, Subscription, Ticks},
    store::Fault,
};
use std::{collections::HashSet, time::Duration};

async fn subscribe(node: &Node, url: &str, types: &[EventType]) -> (Subscription, String) {
    let (made, secret) = node.engine.subscribe(url.to_owned(), types.to_vec(), &author()).await.expect("it is made");
    (made, secret.expose())
}

/// Runs what is due to its end and gives the events their places.
async fn run_all(node: &Node, ticks: &Ticks, tasks: i64, database: &TestDatabase) {
    ticks.relay().await.unwrap();
    ticks.consume().await.unwrap();
    let _ = node;
    eventually(LIMIT, "all have ended", || async { database.number("SELECT COUNT(*) FROM event").await == tasks }).await;
    while ticks.place().await.unwrap() > 0 {}
}

async fn only_delivery(node: &Node) -> protocol_bridge::domain::delivery::Delivery {
    let mut found = node.engine.deliveries(DeliveryFilter::default(), None, 10).await.expect("readable").items;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

on_both_databases! {
    async fn every_receiver_has_its_own_pace_and_the_healthy_one_hears_everything(database: TestDatabase) {
        const TASKS: usize = 60;
        recorder();
        let setup = Setup::new().with_config(|config| config.max_running = 8);
        let db = setup.open(&database).await;
        let node = setup.start(&database, &db);
        let healthy = Receiver::start(Manner::Answers(204)).await;
        let elsewhere = Receiver::start(Manner::Answers(204)).await;
        let mut bad = Vec::new();
        for manner in [Manner::Hangs, Manner::Drips, Manner::Endless, Manner::Redirects(elsewhere.url()), Manner::Answers(410), Manner::Answers(500)] {
            bad.push(Receiver::start(manner).await);
        }
        let (_, secret) = subscribe(&node, &healthy.url(), &[]).await;
        let refusing = format!("http://{}/", Receiver::refusing().await);
        for url in bad.iter().map(Receiver::url).chain([refusing]) {
            subscribe(&node, &url, &[]).await;
        }
        for number in 0..TASKS {
            let mut submission = protocol(&format!("a{number}"));
            submission.client_reference = Some(format!("Протокол № {number} 🗳️"));
            node.submit(submission).await;
        }
        eventually(LIMIT, "all have ended", || async { database.number("SELECT COUNT(*) FROM event").await == 60 }).await;
        eventually(LIMIT, "the healthy one has heard everything", || async { healthy.count() >= TASKS }).await;
        let taken = healthy.taken();
        assert_eq!(taken.iter().map(|taken| taken.id().to_owned()).collect::<HashSet<_>>().len(), TASKS);
        assert!(taken.iter().all(|taken| taken.headers["content-type"] == "application/cloudevents+json"));
        let references: HashSet<String> = taken.iter().map(|taken| taken.json()["data"]["clientReference"].as_str().expect("a text").to_owned()).collect();
        assert!(references.contains("Протокол № 7 🗳️") && references.len() == TASKS);
        assert_eq!(verified_by_python(taken, &[&secret]).await, TASKS);
        assert_eq!(elsewhere.connections(), 0, "no redirect is followed");
        // An answer without an end is an answer; the receiver that is gone is told nothing more.
        eventually(LIMIT, "the endless one counts as told", || async { bad[2].count() >= TASKS }).await;
        eventually(LIMIT, "410 is noted", || async {
            node.engine.subscriptions().await.unwrap().iter().filter(|one| one.disabled_at.is_some()).count() == 1
        })
        .await;
        assert!(bad[4].count() < TASKS, "those that were on their way, at most");
        assert!(metric(r#"deliveries_total{sink="webhook",outcome="delivered"}"#) >= 60);
        assert!(metric(r#"deliveries_total{sink="webhook",outcome="retried"}"#) >= 1);
        node.kill().await;
    }

    // Case W-03: a time-out after the receiver has taken it is tried again under the same id; a task does not mind what becomes of its webhooks.
    async fn w_03_a_receiver_that_answers_too_late_gets_the_same_event_again(database: TestDatabase) {
        let mut setup = Setup::still(60);
        setup.telling.config.timeout = Duration::from_millis(300);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let receiver = Receiver::start(Manner::Hangs).await;
        subscribe(&node, &receiver.url(), &[]).await;
        let task = node.submit(protocol("late")).await;
        run_all(&node, &ticks, 1, &database).await;
        for (tries, wait) in [(1, 6), (2, 67), (3, 331)] {
            assert_eq!(ticks.deliver().await.unwrap(), 1);
            let delivery = only_delivery(&node).await;
            assert_eq!((delivery.attempts, delivery.last_status.as_deref(), delivery.state()), (tries, Some("timeout"), State::Pending));
            assert_eq!(ticks.deliver().await.unwrap(), 0, "not before its time");
            node.clock.advance(Duration::from_secs(wait));
        }
        ticks.deliver().await.unwrap();
        let delivery = only_delivery(&node).await;
        assert_eq!((delivery.attempts, delivery.state()), (4, State::Failed), "the schedule is used up");
        let taken = receiver.taken();
        assert_eq!(taken.len(), 4);
        assert!(taken.iter().all(|other| other.id() == taken[0].id() && other.body == taken[0].body), "the same event, byte for byte");
        assert_eq!(node.task(task.id).await.status, Status::Completed);
        assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1, "one outcome");
    }

    async fn between_the_send_and_its_note_the_same_id_comes_twice_and_never_none(database: TestDatabase) {
        let setup = Setup::still(61);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let receiver = Receiver::start(Manner::Answers(200)).await;
        subscribe(&node, &receiver.url(), &[]).await;
        node.submit(protocol("twice")).await;
        run_all(&node, &ticks, 1, &database).await;
        // As a process that dies there.
        db.faults().arm("settle_deliveries", Fault::FailBefore, 1);
        ticks.deliver().await.unwrap();
        assert_eq!(only_delivery(&node).await.state(), State::Pending);
        assert_eq!(ticks.deliver().await.unwrap(), 0, "its claim holds");
        node.clock.advance(Duration::from_mins(1));
        ticks.deliver().await.unwrap();
        assert_eq!(only_delivery(&node).await.state(), State::Delivered);
        let ids: Vec<String> = receiver.taken().iter().map(|taken| taken.id().to_owned()).collect();
        assert_eq!((ids.len(), &ids[0]), (2, &ids[1]));
        // Noted, and nobody heard that it was: nothing is sent again.
        node.submit(protocol("once")).await;
        node.clock.advance(SECOND);
        run_all(&node, &ticks, 2, &database).await;
        db.faults().arm("settle_deliveries", Fault::FailAfter, 1);
        ticks.deliver().await.unwrap();
        node.clock.advance(Duration::from_mins(10));
        ticks.deliver().await.unwrap();
        assert_eq!(receiver.count(), 3);
    }

    async fn retry_after_is_honoured_and_a_final_answer_is_final_until_somebody_sends_it_again(database: TestDatabase) {
        let setup = Setup::still(62);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let busy = Receiver::start(Manner::AsksFor("90".to_owned())).await;
        let strict = Receiver::start(Manner::FailsFirst(1, 404)).await;
        subscribe(&node, &busy.url(), &[]).await;
        let (picky, _) = subscribe(&node, &strict.url(), &[EventType::Completed]).await;
        node.submit(protocol("a")).await;
        run_all(&node, &ticks, 1, &database).await;
        assert_eq!(ticks.deliver().await.unwrap(), 2);
        node.clock.advance(Duration::from_secs(89));
        assert_eq!(ticks.deliver().await.unwrap(), 0);
        node.clock.advance(SECOND);
        assert_eq!(ticks.deliver().await.unwrap(), 1);
        let failed = DeliveryFilter { state: Some(State::Failed), ..DeliveryFilter::default() };
        let given_up = node.engine.deliveries(failed.clone(), None, 10).await.unwrap().items;
        assert_eq!(given_up.iter().map(|one| one.last_status.as_deref()).collect::<Vec<_>>(), [Some("HTTP 404")]);
        assert_eq!(node.engine.resend_failed(Some(Sink::Subscription(picky.id)), &author()).await.unwrap(), 1);
        assert_eq!(ticks.deliver().await.unwrap(), 1);
        assert_eq!(node.engine.deliveries(failed, None, 10).await.unwrap().items, []);
        // One that was delivered can be sent again as well; the event keeps its id.
        assert!(node.engine.resend(given_up[0].id, &author()).await.unwrap().is_some());
        assert_eq!(ticks.deliver().await.unwrap(), 1);
        let taken = strict.taken();
        assert_eq!(taken.iter().map(|taken| taken.id().to_owned()).collect::<HashSet<_>>().len(), 1);
        assert_eq!(taken.len(), 3);
        assert_eq!(node.engine.resend(uuid::Uuid::nil().into(), &author()).await.unwrap(), None);
        let actions = node.engine.audit(protocol_bridge::engine::AuditFilter::default(), None, 10).await.unwrap().items;
        assert_eq!(actions.iter().filter(|entry| entry.action.as_str() == "delivery.resend").count(), 2);
    }

    async fn two_secrets_sign_while_one_is_replaced(database: TestDatabase) {
        let setup = Setup::still(63);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let receiver = Receiver::start(Manner::Answers(200)).await;
        let (made, old) = subscribe(&node, &receiver.url(), &[]).await;
        let (_, new) = node.engine.rotate_secret(made.id, Duration::from_hours(1), &author()).await.unwrap();
        assert_ne!(new.expose(), old);
        for (number, wait) in [(1, Duration::from_mins(59)), (2, Duration::from_mins(1)), (3, Duration::ZERO)] {
            node.submit(protocol(&format!("a{number}"))).await;
            run_all(&node, &ticks, number, &database).await;
            ticks.deliver().await.unwrap();
            node.clock.advance(wait);
        }
        let taken = receiver.taken();
        let signatures: Vec<usize> = taken.iter().map(|taken| taken.headers["webhook-signature"].split(' ').count()).collect();
        assert_eq!(signatures, [2, 2, 1]);
        assert_eq!(verified_by_python(taken.clone(), &[&new.expose()]).await, 3);
        assert_eq!(verified_by_python(taken[..2].to_vec(), &[&old]).await, 2);
        // Nothing of it lies in the database as it is.
        let rows = format!("{:?}", database.fetch("SELECT secret_sealed, previous_secret_sealed FROM subscription").await);
        assert!(!rows.contains(&old[6..]) && !rows.contains(&new.expose()[6..]), "{rows}");
    }

    async fn a_receiver_that_is_gone_is_told_again_when_somebody_says_so(database: TestDatabase) {
        let setup = Setup::still(64);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let receiver = Receiver::start(Manner::FailsFirst(1, 410)).await;
        let (made, _) = subscribe(&node, &receiver.url(), &[]).await;
        for number in 1..=2 {
            node.submit(protocol(&format!("a{number}"))).await;
            run_all(&node, &ticks, number, &database).await;
            ticks.deliver().await.unwrap();
        }
        assert_eq!(receiver.count(), 1, "the second event has no delivery for it");
        assert!(node.engine.ping_subscription(made.id).await.unwrap().status == "HTTP 204", "a ping is sent to one that is off");
        let change = Change { url: None, types: None, enabled: Some(true) };
        assert!(node.engine.update_subscription(made.id, change, &author()).await.unwrap().disabled_at.is_none());
        node.submit(protocol("a3")).await;
        run_all(&node, &ticks, 3, &database).await;
        ticks.deliver().await.unwrap();
        assert_eq!(receiver.taken().last().unwrap().json()["subject"], "a3");
        node.engine.unsubscribe(made.id, &author()).await.unwrap();
        assert_eq!(database.number("SELECT COUNT(*) FROM delivery").await, 0);
    }

    async fn a_task_tells_its_own_callbacks_however_late_they_are_named(database: TestDatabase) {
        let setup = Setup::still(65);
        let db = setup.open(&database).await;
        let (node, ticks) = setup.by_hand(&database, &db);
        let (first, late) = (Receiver::start(Manner::Answers(200)).await, Receiver::start(Manner::Answers(200)).await);
        let mut submission = crate::engine_world::with_key(protocol("a"), "key", "same");
        submission.callback_url = Some(first.url());
        node.submit(submission.clone()).await;
        run_all(&node, &ticks, 1, &database).await;
        ticks.deliver().await.unwrap();
        // Asked again with another address, after the end: told at once, and the first is not told twice.
        submission.callback_url = Some(late.url());
        node.submit(submission).await;
        ticks.deliver().await.unwrap();
        assert_eq!((first.count(), late.count()), (1, 1));
        assert_eq!(first.taken()[0].id(), late.taken()[0].id());
        let secret = node.engine.callback_secret("test").unwrap().expose();
        assert_eq!(verified_by_python([first.taken(), late.taken()].concat(), &[&secret]).await, 2);
        assert_ne!(secret, node.engine.callback_secret("somebody else").unwrap().expose());
    }
}

/// Each receiver hears each event although two replicas carry them, and none of them twice.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_deliveries() {
    let database = TestDatabase::postgres().await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let setup = Setup::new();
        let db = setup.open(&database).await;
        nodes.push(setup.start(&database, &db));
    }
    let receivers = [Receiver::start(Manner::Answers(200)).await, Receiver::start(Manner::Answers(200)).await];
    for receiver in &receivers {
        subscribe(&nodes[0], &receiver.url(), &[]).await;
    }
    for number in 0..100 {
        nodes[number % 3].submit(protocol(&format!("a{number}"))).await;
    }
    eventually(LIMIT, "all is noted", || async {
        database.number("SELECT COUNT(*) FROM delivery WHERE delivered_us IS NOT NULL").await == 200
    })
    .await;
    for receiver in &receivers {
        let ids: HashSet<String> = receiver.taken().iter().map(|taken| taken.id().to_owned()).collect();
        assert_eq!((ids.len(), receiver.count()), (100, 100));
    }
    for node in nodes {
        node.kill().await;
    }
}
