//! NATS JetStream as the doorbell: what goes over it, and that each task runs once however often it rings.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, author, demo, metric, protocol, recorder},
    support::{
        TestDatabase, eventually,
        nats::{Nats, names},
        within,
    },
};
use async_nats::jetstream::{
    consumer::{AckPolicy, pull, push},
    stream,
};
use futures::future::join_all;
use protocol_bridge::{
    base::shutdown::Shutdown,
    domain::{
        envelope::{Envelope, MAX_ENVELOPE_BYTES},
        failure::{Failure, FailureCode},
        ids::{MessageId, TaskId},
        task::{Kind, Status},
    },
    engine::{
        DeadLetterFilter, Decision, Done, Replayed, Run,
        transport::{JetStream, Transport as _, jetstream::Error},
    },
};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use uuid::Uuid;

type Runs = Arc<Mutex<HashMap<TaskId, u32>>>;

/// Counts the runs of each task.
fn counting(runs: &Runs) -> Setup {
    let runs = Arc::clone(runs);
    Setup::new().with_executor(
        Kind::Demo,
        Script::new(move |run: Run| {
            *runs.lock().unwrap().entry(run.task().id).or_default() += 1;
            async { Decision::Done(Done::default()) }
        }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_on_the_stream_is_the_seeds() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (node, ticks) = setup.by_hand(&database, &db);
    let task = node.submit(demo(r#"{"note":"привет"}"#)).await;
    ticks.relay().await.unwrap();
    ticks.mark().await;
    let stored = nats.stream().await.get_last_raw_message_by_subject(&names().subject).await.unwrap();
    let row = node.engine.messages(task.id).await.unwrap().remove(0);
    assert!(row.published_at.is_some());
    assert_eq!(stored.payload, row.payload.as_bytes());
    assert_eq!(stored.headers.get("Nats-Msg-Id").unwrap().as_str(), row.message_id.to_string());
    let envelope: serde_json::Value = serde_json::from_slice(&stored.payload).unwrap();
    assert_eq!(envelope.as_object().unwrap().keys().collect::<Vec<_>>(), ["messageId", "taskId", "envelopeType", "payloadJson"]);
    let inner: serde_json::Value = serde_json::from_str(envelope["payloadJson"].as_str().unwrap()).unwrap();
    assert_eq!(inner, serde_json::json!({ "taskId": task.id, "payload": r#"{"note":"привет"}"# }));

    // One that would be too large for a broker goes without its payload.
    let large = node.submit(demo(&format!(r#"{{"note":"{}"}}"#, "x".repeat(900_000)))).await;
    ticks.relay().await.unwrap();
    let stored = nats.stream().await.get_last_raw_message_by_subject(&names().subject).await.unwrap();
    assert!(stored.payload.len() <= MAX_ENVELOPE_BYTES);
    assert!(String::from_utf8(stored.payload.to_vec()).unwrap().contains(&large.id.to_string()));
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_message_twenty_times_is_one_run() {
    recorder();
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let runs = Runs::default();
    let setup = counting(&runs).with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (writer, ticks) = counting(&runs).with_transport(nats.transport(&shutdown).await).by_hand(&database, &db);
    let task = writer.submit(demo("{}")).await;
    ticks.relay().await.unwrap();
    ticks.mark().await;
    let payload = writer.engine.messages(task.id).await.unwrap().remove(0).payload;
    let context = nats.context().await;
    for _ in 0..19 {
        // Under no id: what our own relay sends twice is stored once.
        context.publish(names().subject, payload.clone().into()).await.unwrap().await.unwrap();
    }
    assert_eq!(nats.stored().await, 20);
    let node = setup.start(&database, &db);
    let done = node.reaches(task.id, Status::Completed).await;
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    assert_eq!((done.claim_no, runs.lock().unwrap()[&task.id]), (1, 1));
    assert_eq!(metric("inbox_duplicates_total"), 19);
    assert_eq!(nats.consumer().await.num_ack_pending, 0);
    node.kill().await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_run_a_thousand_tasks_once_each() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let runs = Runs::default();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let setup = counting(&runs).with_transport(nats.transport(&shutdown).await);
        let db = setup.open(&database).await;
        nodes.push(setup.start(&database, &db));
    }
    for chunk in 0..20 {
        join_all((0..50).map(|number| nodes[(chunk + number) % 3].submit(demo("{}")))).await;
    }
    eventually(2 * LIMIT, "all are done", async || {
        database.number("SELECT COUNT(*) FROM task WHERE status = 'COMPLETED' AND claim_no = 1").await == 1000
    })
    .await;
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    let runs = runs.lock().unwrap();
    assert_eq!((runs.len(), runs.values().sum::<u32>()), (1000, 1000), "each ran once");
    assert_eq!(database.number("SELECT COUNT(*) FROM attempt WHERE outcome = 'completed'").await, 1000);
    assert_eq!(database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await, 0);
    assert!(database.number("SELECT COUNT(DISTINCT worker_id) FROM attempt").await > 1, "more than one of them worked");
    for node in nodes {
        node.kill().await;
    }
    shutdown.force();
}

/// Case O-05: the duplicate window is minutes, retries and replays come within seconds.
#[tokio::test(flavor = "multi_thread")]
async fn neither_a_retry_nor_a_replay_is_taken_for_a_duplicate() {
    recorder();
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let runs = Runs::default();
    let counted = Arc::clone(&runs);
    let setup = Setup::new()
        .with_transport(nats.transport(&shutdown).await)
        .with_config(|config| {
            config.retry_base = Duration::from_millis(20);
            config.max_attempts = 3;
        })
        .with_executor(
            Kind::Demo,
            Script::new(move |run: Run| {
                *counted.lock().unwrap().entry(run.task().id).or_default() += 1;
                async { Decision::Retry(Failure::new(FailureCode::Internal, "not yet")) }
            }),
        );
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let task = node.submit(demo("{}")).await;
    let mut letters = 0;
    for round in 1..=2 {
        node.claimed(task.id, 3 * round, Status::Failed).await;
        assert_eq!(runs.lock().unwrap()[&task.id], 3 * round, "every attempt really ran");
        let letter = node.engine.dead_letters(DeadLetterFilter::default(), None, 10).await.unwrap().items.remove(0);
        letters += 1;
        if round == 1 {
            assert!(matches!(node.engine.replay(letter.id, None, &author()).await.unwrap(), Replayed::Queued(_)));
        }
    }
    assert_eq!(database.number("SELECT COUNT(*) FROM dead_letter").await, letters);
    let ids = node.engine.messages(task.id).await.unwrap();
    assert_eq!(ids.iter().map(|message| message.message_id).collect::<HashSet<_>>().len(), 6, "a message for each: {ids:?}");
    assert_eq!(metric(r#"relay_duplicates_total{transport="jetstream"}"#), 0);
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    node.kill().await;
    shutdown.force();
}

/// Case O-05: the stream is purged, and the same row is sent again within the window: NATS says "duplicate" and stores nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_sent_again_after_a_purge_is_a_duplicate_and_its_task_is_not_lost() {
    recorder();
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (writer, ticks) = Setup::new().with_transport(nats.transport(&shutdown).await).by_hand(&database, &db);
    let task = writer.submit(demo("{}")).await;
    ticks.relay().await.unwrap();
    // Not marked: this relay dies here.
    nats.stream().await.purge().await.unwrap();
    database.execute("UPDATE outbox SET claim_until_us = 0").await;
    assert_eq!(ticks.relay().await.unwrap(), 1, "sent again");
    ticks.mark().await;
    assert_eq!(metric(r#"relay_duplicates_total{transport="jetstream"}"#), 1);
    assert_eq!(nats.stored().await, 0, "NATS kept nothing of it");
    let node = setup.start(&database, &db);
    let done = node.reaches(task.id, Status::Completed).await;
    assert_eq!(done.claim_no, 1);
    node.kill().await;
    shutdown.force();
}

/// Case O-04: a row that no broker takes stands first.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_brokers_limit_is_put_off_and_blocks_nobody() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (message_id, task_id) = (MessageId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(2)));
    let too_large = Envelope { payload_json: "x".repeat(2_000_000), ..Envelope::process_task(message_id, task_id, "{}") }.to_json();
    database
        .execute(&format!(
            "INSERT INTO outbox (message_id, task_id, envelope_type, payload, available_us, send_attempts, created_us) \
             VALUES ('{message_id}', '{task_id}', 'ProcessTask', '{too_large}', 1, 0, 1)"
        ))
        .await;
    let node = setup.start(&database, &db);
    let started = Instant::now();
    join_all((0..100).map(|_| node.submit(demo("{}")))).await;
    let (published, poison) = ("SELECT COUNT(*) FROM outbox WHERE published_us IS NOT NULL", node.engine.messages(task_id));
    eventually(5 * SECOND, "the good ones are out", async || database.number(published).await == 100).await;
    assert!(started.elapsed() < 5 * SECOND);
    let poison = poison.await.unwrap().remove(0);
    assert!(poison.send_attempts >= 1 && poison.last_error.as_ref().unwrap().contains("max payload"), "{poison:?}");
    node.kill().await;
    shutdown.force();
}

/// Case O-08 (b): what nobody can read is ended, what fails for good is a dead letter, and nothing stays in the stream.
#[tokio::test(flavor = "multi_thread")]
async fn rubbish_in_the_stream_is_ended() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let context = nats.context().await;
    let unknown = Envelope::process_task(MessageId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(2)), "{}");
    let other_type = Envelope { envelope_type: "DropTables".to_owned(), ..unknown.clone() };
    for body in ["rubbish".to_owned(), "{}".to_owned(), other_type.to_json(), unknown.to_json()] {
        context.publish(names().subject, body.into()).await.unwrap().await.unwrap();
    }
    let task = node.submit(demo("{}")).await;
    node.reaches(task.id, Status::Completed).await;
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    assert_eq!(nats.consumer().await.num_redelivered, 0);
    node.kill().await;
    shutdown.force();
}

/// Permit first, then the message: what a full node does not ask for is there for the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_leaves_the_messages_to_others() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let small = |transport: Arc<JetStream>| {
        Setup::new()
            .with_transport(transport)
            .with_executor(Kind::Demo, crate::engine_world::endless())
            .with_config(|config| config.max_running = 2)
    };
    let setup = small(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let (writer, ticks) = Setup::new().with_transport(nats.transport(&shutdown).await).by_hand(&database, &db);
    for _ in 0..10 {
        writer.submit(demo("{}")).await;
    }
    ticks.relay().await.unwrap();
    ticks.mark().await;
    let first = setup.start(&database, &db);
    let running = "SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'";
    let left = async || {
        let consumer = nats.consumer().await;
        (database.number(running).await, consumer.num_pending, consumer.num_ack_pending)
    };
    eventually(LIMIT, "two run, eight wait, none is held back", async || left().await == (2, 8, 0)).await;
    let second = small(nats.transport(&shutdown).await).start(&database, &db);
    eventually(LIMIT, "two more run elsewhere", async || left().await == (4, 6, 0)).await;
    first.kill().await;
    second.kill().await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_and_was_not_asked_for_is_put_back_at_the_end() {
    let (nats, shutdown) = (Nats::start().await, Shutdown::new());
    let transport = nats.transport(&shutdown).await;
    // A wait for five messages that is given up: the request stays open.
    assert!(futures::poll!(std::pin::pin!(transport.receive(5))).is_pending());
    let waiting = async || {
        let mut wait = std::pin::pin!(transport.receive(5));
        let _ = futures::poll!(&mut wait);
        nats.consumer().await.num_waiting == 1
    };
    eventually(LIMIT, "the request is there", waiting).await;
    let context = nats.context().await;
    for number in 1..=3 {
        let envelope = Envelope::process_task(MessageId(Uuid::from_u128(number)), TaskId(Uuid::from_u128(number)), "{}").to_json();
        context.publish(names().subject, envelope.into()).await.unwrap().await.unwrap();
    }
    eventually(LIMIT, "they came", async || nats.consumer().await.num_ack_pending == 3).await;
    transport.close().await;
    // Long before the acknowledgement's wait of 30 s. NATS may deliver one of them twice.
    let other = nats.transport(&shutdown).await;
    let mut got = HashSet::new();
    let started = Instant::now();
    while got.len() < 3 {
        let deliveries = within(10 * SECOND, "they come to another", other.receive(5)).await;
        for delivery in &deliveries {
            delivery.acknowledge().await;
            got.insert(delivery.envelope.message_id);
        }
    }
    assert!(started.elapsed() < 15 * SECOND, "{:?}", started.elapsed());
    eventually(LIMIT, "the stream is empty", async || nats.stored().await == 0).await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_could_not_be_looked_at_comes_back_later_each_time() {
    let (nats, shutdown) = (Nats::start().await, Shutdown::new());
    let transport = nats.transport(&shutdown).await;
    let envelope = Envelope::process_task(MessageId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(1)), "{}").to_json();
    nats.context().await.publish(names().subject, envelope.into()).await.unwrap().await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let delivery = within(LIMIT, "it comes", transport.receive(5)).await.remove(0);
        waits.push(started.elapsed());
        delivery.put_back(Duration::from_millis(300)).await;
    }
    assert!(waits[1] >= Duration::from_millis(300) && waits[2] >= Duration::from_millis(600), "{waits:?}");
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_with_other_parameters_is_mended_or_refused_with_words() {
    let (nats, shutdown) = (Nats::start().await, Shutdown::new());
    let context = nats.context().await;
    let (stream_name, subject, consumer_name) = (names().stream, names().subject, names().consumer);
    let work_queue = stream::Config {
        name: stream_name.clone(),
        subjects: vec![subject.clone(), "other.subject".to_owned()],
        retention: stream::RetentionPolicy::WorkQueue,
        max_messages: 5,
        discard: stream::DiscardPolicy::New,
        duplicate_window: 10 * SECOND,
        description: Some("the operator's own words".to_owned()),
        ..stream::Config::default()
    };
    let made = context.create_stream(work_queue).await.unwrap();
    let limited = pull::Config {
        durable_name: Some(consumer_name.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: SECOND,
        max_deliver: 3,
        ..pull::Config::default()
    };
    made.create_consumer(limited).await.unwrap();
    nats.transport(&shutdown).await;
    let config = nats.stream().await.cached_info().config.clone();
    assert_eq!(config.subjects, [subject.clone()]);
    assert_eq!((config.max_messages, config.discard, config.duplicate_window), (1_000_000, stream::DiscardPolicy::Old, 120 * SECOND));
    assert_eq!(config.description.as_deref(), Some("the operator's own words"), "what is not ours is left alone");
    let config = nats.consumer().await.config;
    assert_eq!((config.max_deliver, config.ack_wait), (-1, 30 * SECOND));
    // A second start changes nothing.
    nats.transport(&shutdown).await;

    let refused = async || match nats.try_transport(&shutdown).await {
        Err(error @ Error::Unfit { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    made.delete_consumer(&consumer_name).await.unwrap();
    let pushed = push::Config {
        durable_name: Some(consumer_name.clone()),
        deliver_subject: "somewhere".to_owned(),
        ack_policy: AckPolicy::Explicit,
        ..push::Config::default()
    };
    made.create_consumer(pushed).await.unwrap();
    let reason = refused().await;
    assert!(reason.contains("protocol-bridge-workers") && reason.contains("push") && reason.contains("engine.nats_prefix"), "{reason}");

    context.delete_stream(&stream_name).await.unwrap();
    let limits = stream::Config { name: stream_name.clone(), subjects: vec![subject.clone()], ..stream::Config::default() };
    context.create_stream(limits).await.unwrap();
    let reason = refused().await;
    assert!(reason.contains("protocol-bridge-tasks") && reason.contains("Limits"), "{reason}");

    context.delete_stream(&stream_name).await.unwrap();
    let foreign = stream::Config { name: "foreign".to_owned(), subjects: vec![subject], ..stream::Config::default() };
    context.create_stream(foreign).await.unwrap();
    let reason = refused().await;
    assert!(reason.contains("overlap"), "{reason}");
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn protocols_go_over_it_as_well() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = Setup::new().with_transport(nats.transport(&shutdown).await);
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let mut waits = Vec::new();
    for number in 0..20 {
        let task = node.submit(protocol(&format!("a{number}"))).await;
        let task = node.reaches(task.id, Status::Completed).await;
        waits.push(task.started_at.unwrap().since(task.created_at));
    }
    waits.sort();
    assert!(waits[10] < Duration::from_millis(300), "by message, not by the look into the table a second later: {waits:?}");
    node.kill().await;
    shutdown.force();
}
