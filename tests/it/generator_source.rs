//! The HTTP source against a real server: what is asked, how often, and who sees the token.

use crate::support::{
    agenda_server::{AgendaServer, answer, config, stalling},
    agendas::good,
};
use protocol_bridge::{
    base::config::AgendaConfig,
    domain::ids::AgendaId,
    generator::source::{LinkError, Source, SourceError, agenda_source::MAX_AGENDA_BYTES, upstream::Upstream},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const TOKEN: &str = "s3cret-token";

fn id() -> AgendaId {
    "good".parse().expect("an id")
}

fn source(server: &AgendaServer, change: impl Fn(&mut AgendaConfig)) -> Source {
    let mut config = config(&server.url("/agendas/{agendaId}?full=1"));
    config.token = TOKEN.to_owned().into();
    change(&mut config);
    Source::open(&config).expect("the source opens")
}

const PATH: &str = "/agendas/good?full=1";

#[tokio::test]
async fn an_agenda_is_asked_for_once_with_the_token_and_again_with_its_etag() {
    let server = AgendaServer::start(|seen, _| match &seen.if_none_match {
        Some(etag) if etag == "\"7\"" => answer(304, ""),
        _ => {
            let mut response = answer(200, good().to_string());
            response.headers_mut().insert("etag", "\"7\"".parse().expect("a header"));
            response
        }
    })
    .await;
    let source = source(&server, |_| {});
    let fetched = source.fetch(&id()).await.expect("the agenda");
    assert_eq!(fetched.bytes, good().to_string());
    assert_eq!(fetched.revision(), "\"7\"");
    assert_eq!(source.fetch_if_changed(&id(), Some("\"7\"")).await, Ok(None));
    assert!(source.fetch_if_changed(&id(), Some("\"6\"")).await.expect("an answer").is_some());
    assert_eq!(server.count(PATH), 3);
    assert!(server.seen().iter().all(|seen| seen.authorization.as_deref() == Some("Bearer s3cret-token")));
}

#[tokio::test]
async fn without_an_etag_the_content_tells_revisions_apart() {
    let server = AgendaServer::start(|_, before| answer(200, format!("{{\"n\":{before}}}"))).await;
    let source = source(&server, |_| {});
    let (one, two) = (source.fetch(&id()).await.expect("one"), source.fetch(&id()).await.expect("two"));
    assert!(one.revision().starts_with("sha256:"));
    assert_ne!(one.revision(), two.revision());
}

#[tokio::test]
async fn what_is_not_there_is_not_asked_for_again() {
    for status in [404, 410] {
        let server = AgendaServer::start(move |_, _| answer(status, "")).await;
        assert_eq!(source(&server, |_| {}).fetch(&id()).await, Err(SourceError::NotFound("good".to_owned())));
        assert_eq!(server.count(PATH), 1);
    }
}

#[tokio::test]
async fn a_passing_fault_is_asked_past_and_a_lasting_one_is_given_up() {
    let server = AgendaServer::start(|_, before| if before < 2 { answer(503, "") } else { answer(200, "{}") }).await;
    assert_eq!(source(&server, |_| {}).fetch(&id()).await.expect("at the third time").bytes, "{}");
    assert_eq!(server.count(PATH), 3);

    let server = AgendaServer::start(|_, _| answer(500, "")).await;
    assert!(matches!(source(&server, |_| {}).fetch(&id()).await, Err(SourceError::Unavailable(_))));
    assert_eq!(server.count(PATH), 4);

    let server = AgendaServer::start(|_, _| answer(403, "")).await;
    assert!(matches!(source(&server, |_| {}).fetch(&id()).await, Err(SourceError::Unavailable(_))));
    assert_eq!(server.count(PATH), 1);
}

#[tokio::test]
async fn a_refused_connection_is_unavailable() {
    let server = AgendaServer::start(|_, _| answer(200, "{}")).await;
    let source = source(&server, |_| {});
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let free = listener.local_addr().expect("an address");
    drop(listener);
    let mut config = config(&format!("http://{free}/{{agendaId}}"));
    config.token = TOKEN.to_owned().into();
    let closed = Source::open(&config).expect("the source opens");
    let error = closed.fetch(&id()).await.expect_err("nobody listens");
    assert!(matches!(&error, SourceError::Unavailable(reason) if !reason.contains(TOKEN)), "{error}");
    assert!(source.fetch(&id()).await.is_ok());
}

#[tokio::test]
async fn an_answer_that_never_ends_is_given_up_in_time() {
    let server = AgendaServer::start(|_, _| answer(200, stalling("{\"agendaId\":"))).await;
    let source = source(&server, |config| config.timeout = Duration::from_millis(300));
    let start = Instant::now();
    assert!(matches!(source.fetch(&id()).await, Err(SourceError::Unavailable(_))));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn too_large_an_agenda_is_refused() {
    let server = AgendaServer::start(|_, _| answer(200, vec![b' '; usize::try_from(MAX_AGENDA_BYTES).expect("fits") + 1])).await;
    assert_eq!(source(&server, |_| {}).fetch(&id()).await, Err(SourceError::TooLarge { limit: MAX_AGENDA_BYTES }));
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin_and_nowhere_else() {
    let elsewhere = Arc::new(AgendaServer::start(|_, _| answer(200, "{}")).await);
    let target = elsewhere.url("/stolen");
    let server = AgendaServer::start(move |seen, _| {
        let location = match seen.path.as_str() {
            PATH => "/moved",
            "/out" => target.as_str(),
            "/round" => "/round",
            _ => return answer(200, "{}"),
        };
        let mut response = answer(302, "");
        response.headers_mut().insert("location", location.parse().expect("a header"));
        response
    })
    .await;
    assert_eq!(source(&server, |_| {}).fetch(&id()).await.expect("moved within").bytes, "{}");
    assert_eq!(server.count("/moved"), 1);

    for path in ["/out", "/round"] {
        // Behind the # it is not sent: every id leads to the same path.
        let mut config = config(&server.url(&format!("{path}#{{agendaId}}")));
        config.token = TOKEN.to_owned().into();
        config.allowed_hosts = vec![elsewhere.address.to_string()];
        let refused = Source::open(&config).expect("the source opens").fetch(&id()).await;
        assert!(matches!(refused, Err(SourceError::Unavailable(_))), "{refused:?}");
    }
    assert_eq!(elsewhere.seen().len(), 0, "an agenda comes from its own origin, even if the other host is allowed for files");

    // A file may lie with an allowed host; the token stays at home.
    let mut config = config(&server.url("/{agendaId}"));
    config.token = TOKEN.to_owned().into();
    config.allowed_hosts = vec![elsewhere.address.to_string()];
    let home = server.url("/").parse().expect("an address");
    let upstream = Upstream::new(&config, Some(home)).expect("a client");
    upstream.open(&server.url("/out").parse().expect("an address"), None).await.expect("the file");
    assert_eq!(elsewhere.seen().len(), 1);
    assert_eq!(elsewhere.seen()[0].authorization, None);
}

#[tokio::test]
async fn hosts_that_are_not_allowed_are_never_asked() {
    let elsewhere = AgendaServer::start(|_, _| answer(200, "{}")).await;
    let server = AgendaServer::start(|_, _| answer(200, good().to_string())).await;
    let source = source(&server, |_| {});
    let fetched = source.fetch(&id()).await.expect("the agenda");
    let outside = Upstream::new(&config("samples"), None).expect("a client");
    for href in [
        elsewhere.url("/x").as_str(),
        "http://169.254.169.254/latest",
        "//169.254.169.254/latest",
        "file:///etc/passwd",
        "http://user@127.0.0.1/",
    ] {
        let refused = source.open_file(&fetched.address, href, None, &outside).await;
        assert!(matches!(refused, Err(LinkError::Refused(_))), "{href}: {refused:?}");
    }
    assert_eq!(elsewhere.seen().len(), 0);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn one_limit_per_host_holds_for_everybody() {
    let server = AgendaServer::start(|_, _| answer(200, stalling("{"))).await;
    let source = source(&server, |config| {
        config.max_per_host = 2;
        config.timeout = Duration::from_millis(400);
    });
    let all = (0..4).map(|_| source.clone()).map(|source| async move { source.fetch(&id()).await });
    let start = Instant::now();
    let answers = futures::future::join_all(all).await;
    assert!(answers.iter().all(Result::is_err));
    assert!(start.elapsed() >= Duration::from_millis(700), "two at a time take two time-outs: {:?}", start.elapsed());
}

#[test]
fn the_address_needs_a_place_for_the_id() {
    for bad in ["https://host/agendas", "https://{agendaId}/x", "https://", "http://host:port/{agendaId}"] {
        assert!(Source::open(&config(bad)).is_err(), "{bad}");
    }
    assert!(Source::open(&config("https://host/a?b={agendaId}")).is_ok());
    assert!(Source::open(&config("/nowhere/at/all")).is_err());
}
