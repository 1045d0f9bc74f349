//! Events in NATS JetStream: stored before they are noted, once for each id, by reference when large, and waiting in the table while NATS is away.

use crate::{
    engine_world::{LIMIT, SECOND, Script, Setup, author, protocol},
    support::{TestDatabase, eventually, nats::Nats},
};
use async_nats::jetstream::{consumer::pull, stream};
use futures::StreamExt as _;
use protocol_bridge::{
    base::{clock::Clock, config::NatsServers, shutdown::Shutdown},
    domain::{
        delivery::State,
        failure::{Failure, FailureCode, Fault as Wrong},
        task::{Kind, Status},
    },
    engine::{DeadLetterFilter, Decision, DeliveryFilter, Done, EventsInJetStream, Replayed, Run, transport::jetstream::Error},
    store::Fault,
};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc, time::Duration};

const PREFIX: &str = "protocol-bridge";
const SUBJECT: &str = "protocol-bridge.events";
const STREAM: &str = "protocol-bridge-events";

async fn sink(nats: &Nats, shutdown: &Shutdown) -> Result<Arc<EventsInJetStream>, Error> {
    EventsInJetStream::start(&NatsServers::parse(&nats.url()).expect("an address"), PREFIX, SUBJECT, Clock::system(), shutdown).await
}

async fn with_stream(mut setup: Setup, nats: &Nats, shutdown: &Shutdown) -> Setup {
    setup.telling.stream = Some(sink(nats, shutdown).await.expect("it starts"));
    setup
}

/// Everything in the stream, as another reader gets it: subject, message id and event.
async fn stored(nats: &Nats) -> Vec<(String, String, Value)> {
    let stream = nats.context().await.get_stream(STREAM).await.expect("the stream is there");
    let count = usize::try_from(stream.cached_info().state.messages).expect("few");
    let consumer = stream.create_consumer(pull::Config::default()).await.expect("a reader");
    let messages: Vec<_> = consumer.messages().await.expect("a subscription").take(count).collect().await;
    messages
        .into_iter()
        .map(|message| {
            let message = message.expect("a message");
            let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id")).expect("an id").to_string();
            (message.subject.to_string(), id, serde_json::from_slice(&message.payload).expect("JSON"))
        })
        .collect()
}

/// Case O-09 with it: an event whose errors are megabytes.
#[tokio::test(flavor = "multi_thread")]
async fn o_09_each_type_has_its_subject_and_a_large_event_goes_by_reference() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = with_stream(Setup::new(), &nats, &shutdown).await.with_executor(
        Kind::Protocol,
        Script::new(|run: Run| async move {
            if run.task().payload.contains("large") {
                let errors = vec![Wrong { code: "x".to_owned(), pointer: "/questions".to_owned(), detail: "ж".repeat(1000) }; 1000];
                return Decision::Fail(Failure::new(FailureCode::AgendaInvalid, "Повестка противоречива 🗳").with_errors(errors));
            }
            if run.task().payload.contains("long") {
                run.cancelled().cancelled().await;
            }
            Decision::Done(Done::default())
        }),
    );
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    for agenda in ["good", "large", "long"] {
        let task = node.submit(protocol(agenda)).await;
        if agenda == "long" {
            node.reaches(task.id, Status::InProgress).await;
            node.engine.cancel(task.id, &author()).await.unwrap();
        }
    }
    eventually(LIMIT, "all are stored", async || {
        database.number("SELECT COUNT(*) FROM delivery WHERE delivered_us IS NOT NULL").await == 3
    })
    .await;
    let stored = stored(&nats).await;
    let of = |agenda: &str| stored.iter().find(|(_, _, event)| event["subject"] == agenda).expect("it is there");
    assert_eq!(of("good").0, format!("{SUBJECT}.ObesrabuoProtocolGenerationCompleted"));
    assert_eq!(of("long").0, format!("{SUBJECT}.ObesrabuoProtocolGenerationCancelled"));
    let (subject, id, large) = of("large");
    assert_eq!((subject.as_str(), &large["id"]), ("protocol-bridge.events.ObesrabuoProtocolGenerationFailed", &Value::from(id.as_str())));
    assert_eq!((&large["data"], &large["dataref"]), (&Value::Null, &Value::from(format!("/api/events/{id}"))));
    let whole = node.engine.event(id.parse().unwrap()).await.unwrap().expect("it is kept");
    assert!(whole.body.len() > 2_000_000);
    assert!(stored.iter().all(|(_, id, event)| event["id"] == id.as_str() && event["specversion"] == "1.0"));
    node.kill().await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_acknowledgement_and_its_note_the_same_id_goes_twice_and_is_stored_once() {
    let (database, nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = with_stream(Setup::still(80), &nats, &shutdown).await;
    let db = setup.open(&database).await;
    let (node, ticks) = setup.by_hand(&database, &db);
    node.submit(protocol("twice")).await;
    ticks.relay().await.unwrap();
    ticks.consume().await.unwrap();
    eventually(LIMIT, "it has ended", async || database.number("SELECT COUNT(*) FROM event").await == 1).await;
    ticks.place().await.unwrap();
    db.faults().arm("settle_deliveries", Fault::FailBefore, 1);
    assert_eq!(ticks.deliver().await.unwrap(), 1);
    assert_eq!(database.number("SELECT COUNT(*) FROM delivery WHERE delivered_us IS NOT NULL").await, 0, "acknowledged, and not noted");
    node.clock.advance(Duration::from_mins(1));
    assert_eq!(ticks.deliver().await.unwrap(), 1);
    let told = node.engine.deliveries(DeliveryFilter::default(), None, 2).await.unwrap().items;
    assert_eq!((told[0].state(), told[0].last_status.as_deref()), (State::Delivered, Some("stored before")));
    assert_eq!(stored(&nats).await.len(), 1);
    shutdown.force();
}

/// Cases O-05 and O-08: a replay's event is another one, and no outage uses up the tries of what waits.
#[tokio::test(flavor = "multi_thread")]
async fn o_05_o_08_nats_is_away_and_nothing_is_lost_or_swallowed() {
    let (database, mut nats, shutdown) = (TestDatabase::postgres().await, Nats::start().await, Shutdown::new());
    let setup = with_stream(Setup::new(), &nats, &shutdown).await.with_executor(
        Kind::Protocol,
        Script::new(|run: Run| async move {
            if run.task().payload.contains("again") && run.task().claim_no == 1 {
                return Decision::Fail(Failure::new(FailureCode::RenderFailed, "Not yet."));
            }
            Decision::Done(Done::default())
        }),
    );
    let stream = setup.telling.stream.clone().expect("there is one");
    let db = setup.open(&database).await;
    let node = setup.start(&database, &db);
    let again = node.submit(protocol("again")).await;
    node.reaches(again.id, Status::Failed).await;
    let pending = "SELECT COUNT(*) FROM delivery WHERE next_us IS NOT NULL";
    eventually(LIMIT, "the first is stored", async || database.number(pending).await == 0 && stored(&nats).await.len() == 1).await;
    nats.kill();
    eventually(LIMIT, "it is noticed", async || !stream.is_up()).await;
    let letter = node.engine.dead_letters(DeadLetterFilter::default(), None, 1).await.unwrap().items.remove(0);
    assert!(matches!(node.engine.replay(letter.id, None, &author()).await.unwrap(), Replayed::Queued(_)));
    for number in 0..50 {
        node.submit(protocol(&format!("a{number}"))).await;
    }
    eventually(LIMIT, "all have ended, and their events wait", async || database.number(pending).await == 51).await;
    assert_eq!(database.number("SELECT COUNT(*) FROM delivery WHERE next_us IS NOT NULL AND attempts > 1").await, 0);
    nats.start_again().await;
    eventually(2 * LIMIT, "all are stored", async || database.number(pending).await == 0).await;
    let stored = stored(&nats).await;
    let ids: HashSet<&String> = stored.iter().map(|(_, id, _)| id).collect();
    assert_eq!((stored.len(), ids.len()), (52, 52));
    let types: Vec<&Value> =
        stored.iter().filter(|(_, _, event)| event["subject"] == "again").map(|(_, _, event)| &event["type"]).collect();
    assert_eq!(types, ["ObesrabuoProtocolGenerationFailed", "ObesrabuoProtocolGenerationCompleted"]);
    node.kill().await;
    shutdown.force();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_another_kind_ends_the_start_with_words_and_an_operators_limits_are_let_be() {
    let (nats, shutdown) = (Nats::start().await, Shutdown::new());
    let config = |retention| stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["something.else".to_owned()],
        retention,
        max_age: 3600 * SECOND,
        ..stream::Config::default()
    };
    nats.context().await.create_stream(config(stream::RetentionPolicy::WorkQueue)).await.unwrap();
    let error = sink(&nats, &shutdown).await.expect_err("one reader would take from another");
    assert!(error.to_string().contains(STREAM), "{error}");
    nats.context().await.delete_stream(STREAM).await.unwrap();
    nats.context().await.create_stream(config(stream::RetentionPolicy::Limits)).await.unwrap();
    sink(&nats, &shutdown).await.expect("it can be used");
    let there = nats.context().await.get_stream(STREAM).await.unwrap().cached_info().config.clone();
    assert_eq!((there.max_age, there.subjects.len()), (3600 * SECOND, 2));
    shutdown.force();
}
