//! The one guard for addresses that somebody else has named: what it refuses, when, and that nothing was sent (W-01).

use crate::support::{
    agenda_server::{AgendaServer, answer},
    networks::ToyNetwork,
};
use protocol_bridge::base::outgoing::{Guard, Refused, refused};
use reqwest::Url;
use std::sync::Arc;

fn url(text: &str) -> Url {
    text.parse().expect(text)
}

/// What is refused as it is written, whatever base or notation its host is written in.
const NEVER_PUBLIC: [&str; 26] = [
    "http://example.org/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://0/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://127.1/",
    "https://127.0.0.1./",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/",
    "https://0xa9fea9fe/",
    "https://100.64.0.1/",
    "https://[fd00::1]/",
    "https://[fe80::1]/",
    "https://[ff02::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://user@example.org/",
    "https://user:pass@example.org/",
    "https://example.org:25/",
    "file:///etc/passwd",
    "gopher://example.org/",
];

#[tokio::test]
async fn what_is_written_as_an_inner_address_is_refused_before_anything_is_asked() {
    let network = Arc::new(ToyNetwork::default());
    let guard = Guard::public().over(Arc::clone(&network) as _);
    let client = guard.client(reqwest::Client::builder()).expect("a client").build();
    for text in NEVER_PUBLIC {
        let url = url(text);
        assert!(guard.check(&url).is_err(), "{text}");
        assert!(guard.look(&url).await.is_err(), "{text}");
        // A client takes user and password out of the address before anybody sees the request: whoever hands it one has to ask first. And it knows no other schemes.
        if url.username().is_empty() && url.scheme().starts_with("http") {
            let error = client.get(url).send().await.expect_err(text);
            assert!(refused(&error).is_some(), "{text}: {error:?}");
        }
    }
    assert_eq!(network.looked_up(), 0);
    assert_eq!(guard.check(&url("https://example.org:8443/hook")), Ok(()));
}

#[tokio::test]
async fn closed_networks_are_allowed_private_addresses_and_never_link_local_ones() {
    let guard = Guard::closed();
    for text in ["http://127.0.0.1:8080/", "http://10.0.0.1/", "https://[fd00::1]/", "http://[::1]/", "http://0x7f.1/", "http://intranet/"]
    {
        assert_eq!(guard.check(&url(text)), Ok(()), "{text}");
    }
    for text in [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
    ] {
        assert!(matches!(guard.check(&url(text)), Err(Refused::Never { .. })), "{text}");
    }
}

#[tokio::test]
async fn the_address_that_was_looked_at_is_the_one_that_is_connected_to() {
    let server = AgendaServer::start(|_, _| answer(200, "here")).await;
    let network = Arc::new(ToyNetwork::leading_to(server.address));
    network.say("hook.example", &["203.0.114.5"]);
    network.say("inner.example", &["10.0.0.5"]);
    network.say("mixed.example", &["203.0.114.5", "127.0.0.1"]);
    network.say("metadata.example", &["169.254.169.254"]);
    network.say("v6.example", &["::ffff:10.0.0.5"]);
    // Passes the look at registration, and leads inside a moment later.
    network.say("flips.example", &["203.0.114.5"]);
    network.say("flips.example", &["127.0.0.1"]);

    // The toy server speaks plain HTTP; the guard of strangers is tried with addresses, the guard of closed networks with the whole way.
    let guard = Guard::public().over(Arc::clone(&network) as _);
    assert!(guard.look(&url("https://hook.example/")).await.is_ok());
    assert!(guard.look(&url("https://flips.example/")).await.is_ok());
    let client = guard.client(reqwest::Client::builder()).expect("a client").build();
    for host in ["inner.example", "mixed.example", "metadata.example", "v6.example", "flips.example"] {
        let error = client.post(url(&format!("https://{host}/"))).send().await.expect_err(host);
        assert!(refused(&error).is_some(), "{host}: {error:?}");
    }
    assert_eq!(network.dialled(), Vec::<String>::new(), "no connection was made");

    let client = Guard::closed().over(Arc::clone(&network) as _).client(reqwest::Client::builder()).expect("a client").build();
    let text = client.get(url("http://inner.example/")).send().await.expect("an answer").text().await.expect("a text");
    assert_eq!((text.as_str(), network.dialled()), ("here", vec!["10.0.0.5".to_owned()]));
    let error = client.get(url("http://metadata.example/")).send().await.expect_err("never");
    assert!(matches!(refused(&error), Some(Refused::Never { host }) if host == "metadata.example"), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn redirects_are_handed_to_the_caller() {
    let server = AgendaServer::start(|_, _| {
        let mut response = answer(307, "");
        response.headers_mut().insert("location", "http://169.254.169.254/".parse().expect("a header"));
        response
    })
    .await;
    let client = Guard::closed().client(reqwest::Client::builder()).expect("a client").build();
    let response = client.get(server.url("/")).send().await.expect("an answer");
    assert_eq!((response.status().as_u16(), server.seen().len()), (307, 1));
}
