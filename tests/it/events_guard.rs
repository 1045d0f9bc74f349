//! Case W-01 at the connection: names that lead inside, or that lead elsewhere at the second look, are refused; the address that was looked at is the one dialled.

use crate::{
    engine_world::{LIMIT, Setup, author, protocol},
    support::{
        TestDatabase, eventually,
        networks::ToyNetwork,
        receivers::{Manner, Receiver},
    },
};
use protocol_bridge::engine::{DeliveryFilter, SubscriptionError};
use std::{sync::Arc, time::Duration};

#[tokio::test(flavor = "multi_thread")]
async fn w_01_names_are_looked_at_when_they_are_registered_and_at_every_connection() {
    let database = TestDatabase::sqlite().await;
    let inside = Receiver::start(Manner::Answers(200)).await;
    let network = Arc::new(ToyNetwork::leading_to(inside.address));
    network.say("inside.example.org", &["10.1.2.3"]);
    network.say("both.example.org", &["8.8.8.8", "10.1.2.3"]);
    network.say("flips.example.org", &["8.8.8.8"]);
    network.say("flips.example.org", &["127.0.0.1"]);
    let mut setup = Setup::still(70);
    setup.telling.config.allow_private_targets = false;
    setup.telling.network = Arc::clone(&network) as Arc<_>;
    let db = setup.open(&database).await;
    let (node, ticks) = setup.by_hand(&database, &db);
    for name in ["inside.example.org", "both.example.org"] {
        let refused = node.engine.subscribe(format!("https://{name}/hook"), Vec::new(), &author()).await;
        assert!(matches!(refused, Err(SubscriptionError::Refused(_))), "{name}");
    }
    node.engine.subscribe("https://flips.example.org/hook".to_owned(), Vec::new(), &author()).await.expect("it leads outside, for now");
    node.submit(protocol("a")).await;
    ticks.relay().await.unwrap();
    ticks.consume().await.unwrap();
    eventually(LIMIT, "it has ended", || async { database.number("SELECT COUNT(*) FROM event").await == 1 }).await;
    ticks.place().await.unwrap();
    for round in 1..=3 {
        ticks.deliver().await.unwrap();
        let delivery = node.engine.deliveries(DeliveryFilter::default(), None, 1).await.unwrap().items.remove(0);
        assert_eq!(delivery.attempts, round);
        assert_eq!(delivery.last_status.as_deref(), Some("refused: flips.example.org is a private address"));
        node.clock.advance(Duration::from_mins(6));
    }
    assert_eq!((network.dialled(), inside.connections()), (Vec::new(), 0));
}
