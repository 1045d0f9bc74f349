//! COLLECT against a real service: each way in which a report can fail, what is asked for again and what is not, and links that lead where nobody may go.

use crate::{
    generator_node::{LIMIT, Setup},
    support::{
        TestDatabase,
        agenda_server::{AgendaServer, answer, stalling},
        agendas::{told, under, with},
        eventually,
        networks::ToyNetwork,
        on_both_databases,
    },
};
use axum::response::Response;
use protocol_bridge::{
    domain::{failure::FailureCode, task::Status},
    generator::source::{LinkError, Opened, upstream::Upstream},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// SHA-256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// An agenda whose questions each have one of these reports.
fn with_reports(reports: &[Value]) -> Value {
    let questions: Vec<Value> = reports.iter().enumerate().map(|(n, report)| {
        json!({"id": format!("q{n}"), "order": n, "title": format!("Вопрос {n}"), "status": "PROTECTED", "outcome": {"category": "noted"}, "report": report})
    }).collect();
    with("/questions", json!(questions))
}

fn pdf(href: &str) -> Value {
    json!({"href": href, "mediaType": "application/pdf"})
}

fn typed(media_type: &str, body: &'static str) -> Response {
    let mut response = answer(200, body);
    response.headers_mut().insert("content-type", media_type.parse().expect("a header"));
    response
}

fn tagged(etag: &str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = answer(200, body);
    response.headers_mut().insert("etag", etag.parse().expect("a header"));
    response
}

on_both_databases! {
    async fn each_way_in_which_a_report_can_fail_has_its_own_code(database: TestDatabase) {
        let cases: Vec<(&str, Value, FailureCode, &str)> = vec![
            ("gone", pdf("f/gone"), FailureCode::ReportUnavailable, "report-not-found"),
            ("down", pdf("f/down"), FailureCode::ReportUnavailable, "report-unavailable"),
            ("slow", pdf("f/slow"), FailureCode::ReportUnavailable, "report-too-slow"),
            ("torn", pdf("f/torn"), FailureCode::ReportUnavailable, "report-truncated"),
            ("large", pdf("f/large"), FailureCode::AgendaTooLarge, "report-too-large"),
            ("page", pdf("f/page"), FailureCode::AgendaInvalid, "report-wrong-type"),
            ("other", json!({"href": "f/abd", "mediaType": "application/pdf", "bytes": 3, "sha256": ABC}), FailureCode::AgendaInvalid, "report-altered"),
            ("short", json!({"href": "f/abd", "mediaType": "application/pdf", "bytes": 4}), FailureCode::AgendaInvalid, "report-size-differs"),
        ];
        let agendas: Vec<(String, String)> =
            cases.iter().map(|(name, report, ..)| (format!("/{name}"), under(&with_reports(&[pdf("f/abc"), report.clone()]), name))).collect();
        let server = AgendaServer::start(move |seen, _| {
            if let Some((_, agenda)) = agendas.iter().find(|(path, _)| *path == seen.path) {
                return answer(200, agenda.clone());
            }
            match seen.path.as_str() {
                "/f/abc" => answer(200, "abc"),
                "/f/abd" => answer(200, "abd"),
                "/f/down" => answer(400, ""),
                "/f/slow" => answer(200, stalling("%PDF")),
                "/f/torn" => torn(),
                "/f/large" => answer(200, vec![b'x'; 4097]),
                "/f/page" => typed("text/html; charset=utf-8", "<html>"),
                _ => answer(404, ""),
            }
        })
        .await;
        let setup = Setup::new(&server.url("/{agendaId}")).with(|config| {
            config.engine.max_attempts = 1;
            config.agenda.timeout = Duration::from_millis(700);
            config.generator.max_report_size = bytesize::ByteSize::b(4096);
        });
        let node = setup.start(&database).await;
        for (name, _, code, fault) in cases {
            let task = node.generate(name).await;
            let failure = task.failure.expect(name);
            assert_eq!((failure.code, told(&failure.errors)), (code, vec![format!("{fault} /questions/1/report")]), "{name}: {failure:#?}");
        }
    }

    /// All of them are told at once; only a holder that is down makes the rest not worth trying.
    async fn reports_that_are_not_there_are_told_together(database: TestDatabase) {
        let agenda = under(&with_reports(&(0..9).map(|n| pdf(&format!("f/{n}"))).collect::<Vec<_>>()), "/a");
        let server = AgendaServer::start(move |seen, _| if seen.path == "/a" { answer(200, agenda.clone()) } else { answer(404, "") }).await;
        let node = Setup::new(&server.url("/{agendaId}")).with(|config| config.engine.max_attempts = 1).start(&database).await;
        let failure = node.generate("a").await.failure.expect("a failure");
        assert_eq!((failure.code, failure.errors.len()), (FailureCode::ReportUnavailable, 9));
    }

    /// A report without a digest is asked about by every new task, and sent again only if its ETag says that it has changed.
    async fn a_report_with_an_etag_is_sent_again_only_when_it_has_changed(database: TestDatabase) {
        let agenda = under(&with_reports(&[pdf("f/1"), json!({"href": "f/2", "mediaType": "application/pdf", "sha256": ABC})]), "/a");
        let version = Arc::new(AtomicUsize::new(1));
        let now = Arc::clone(&version);
        let server = AgendaServer::start(move |seen, _| {
            let etag = format!("\"v{}\"", now.load(Ordering::SeqCst));
            match seen.path.as_str() {
                "/a" => answer(200, agenda.clone()),
                _ if seen.if_none_match.as_ref() == Some(&etag) => answer(304, ""),
                "/f/1" => tagged(&etag, format!("report {etag}")),
                _ => tagged(&etag, "abc"),
            }
        })
        .await;
        let node = Setup::new(&server.url("/{agendaId}")).start(&database).await;
        let first = node.generate("a").await;
        assert_eq!(first.status, Status::Completed, "{:?}", first.failure);
        let again = node.generate("a").await;
        assert_eq!(again.protocol_id, first.protocol_id);
        let conditional: Vec<Option<String>> = server.seen().iter().filter(|seen| seen.path == "/f/1").map(|seen| seen.if_none_match.clone()).collect();
        assert_eq!(conditional, [None, Some("\"v1\"".to_owned())]);
        assert_eq!(server.count("/f/2"), 1, "what has a digest is not asked about");

        version.store(2, Ordering::SeqCst);
        let changed = node.generate("a").await;
        assert_ne!(changed.protocol_id, first.protocol_id, "another report is another protocol");
        assert_eq!(node.protocols("a").await.len(), 2);
        assert_eq!(server.count("/f/2"), 1);
    }

    /// Killed after some of the questions and reports were fetched: the next attempt asks for the rest, and for the agenda once more at the end.
    async fn a_killed_collection_goes_on_where_it_was(database: TestDatabase) {
        const QUESTIONS: usize = 30;
        const BEFORE: usize = 18;
        let list: Vec<Value> = (0..QUESTIONS).map(|n| json!({"id": format!("q{n}"), "order": n, "href": format!("/q/{n}")})).collect();
        let list = under(&with("/questions", json!(list)), "/a");
        let reports = Arc::new(AtomicUsize::new(0));
        let (count, gate) = (Arc::clone(&reports), Arc::new(AtomicUsize::new(BEFORE)));
        let limit = Arc::clone(&gate);
        let server = AgendaServer::start(move |seen, _| {
            if seen.path == "/a" {
                return answer(200, list.clone());
            }
            if let Some(n) = seen.path.strip_prefix("/q/") {
                let question = json!({"id": format!("q{n}"), "title": format!("Вопрос {n}"), "status": "PROTECTED", "outcome": {"category": "noted"},
                    "report": pdf(&format!("/f/{n}"))});
                return answer(200, question.to_string());
            }
            if count.fetch_add(1, Ordering::SeqCst) < limit.load(Ordering::SeqCst) { answer(200, seen.path.clone()) } else { answer(200, stalling("half")) }
        })
        .await;
        let setup = || Setup::new(&server.url("/{agendaId}"));
        let node = setup().start(&database).await;
        let task = node.submit("a").await;
        let stored = "SELECT count(*) FROM checkpoint WHERE step LIKE 'COLLECT/question/%/report'";
        eventually(LIMIT, "eighteen reports are stored", || async { database.number(stored).await == i64::try_from(BEFORE).expect("a number") }).await;
        node.kill().await;

        gate.store(usize::MAX, Ordering::SeqCst);
        let asked = server.seen().len();
        let node = setup().start(&database).await;
        let task = node.finished(task).await;
        assert_eq!((task.status, task.attempt_no), (Status::Completed, 2), "{:?}", task.failure);
        let paths: Vec<String> = server.seen()[asked..].iter().map(|seen| seen.path.clone()).collect();
        assert_eq!(paths.len(), QUESTIONS - BEFORE + 1, "{paths:?}");
        assert_eq!(paths.iter().filter(|path| path.starts_with("/f/")).count(), QUESTIONS - BEFORE);
        assert_eq!(paths.last().map(String::as_str), Some("/a"));
    }

    /// Names and links that lead elsewhere: a problem, nothing opened, nothing asked, and the token stays at home.
    async fn nothing_is_opened_or_asked_outside(database: TestDatabase) {
        let elsewhere = AgendaServer::start(|_, _| answer(200, "stolen")).await;
        let redirecting = elsewhere.url("/stolen");
        let hrefs = ["http://169.254.169.254/latest/meta-data", "http://10.0.0.1/x", "http://[fd00::1]/x", "http://2130706433/x", "file:///etc/passwd", "/out"];
        let agenda = under(&with_reports(&hrefs.map(pdf)), "/a");
        let server = AgendaServer::start(move |seen, _| match seen.path.as_str() {
            "/a" => answer(200, agenda.clone()),
            "/out" => {
                let mut response = answer(302, "");
                response.headers_mut().insert("location", redirecting.parse().expect("a header"));
                response
            }
            _ => answer(404, ""),
        })
        .await;
        let setup = Setup::new(&server.url("/{agendaId}")).with(|config| {
            config.engine.max_attempts = 1;
            config.agenda.token = "s3cret".to_owned().into();
        });
        let node = setup.start(&database).await;
        let failure = node.generate("a").await.failure.expect("a failure");
        let want: Vec<String> = (0..hrefs.len()).map(|n| format!("file-not-followed /questions/{n}/report")).collect();
        assert_eq!((failure.code, told(&failure.errors)), (FailureCode::AgendaInvalid, want));
        assert_eq!(elsewhere.seen().len(), 0, "no request was sent");
        assert_eq!((server.count("/a"), server.count("/out"), server.seen().len()), (2, 1, 3), "the agenda, the file that redirects, and nothing else");

        // Ids are no paths.
        for id in ["..%2f..%2fetc%2fpasswd", "../x"] {
            assert!(id.parse::<protocol_bridge::domain::ids::AgendaId>().is_err(), "{id}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.pdf")).expect("a link");
        let agenda = with_reports(&[pdf("../x"), pdf("..%2f..%2fetc%2fpasswd"), pdf("link.pdf"), pdf("/etc/passwd")]);
        std::fs::write(folder.path().join("b.json"), under(&agenda, "/b")).expect("written");
        let node = Setup::new(folder.path().to_str().expect("a name")).with(|config| config.engine.max_attempts = 1).start(&database).await;
        let failure = node.generate("b").await.failure.expect("a failure");
        let want: Vec<String> = (0..4).map(|n| format!("file-not-followed /questions/{n}/report")).collect();
        assert_eq!((failure.code, told(&failure.errors)), (FailureCode::AgendaInvalid, want));
    }
}

/// An answer that says it is longer than it is.
fn torn() -> Response {
    use futures::StreamExt as _;
    let head = futures::stream::iter([Ok("%PDF-1.4")]);
    // Waiting once lets the server send what it has.
    let end = futures::stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("on purpose"))
    });
    let mut response = answer(200, axum::body::Body::from_stream(head.chain(end)));
    response.headers_mut().insert("content-length", "1000".parse().expect("a header"));
    response
}

/// A host that was allowed by name and resolves to where nobody may go, and one that changes its mind.
#[tokio::test]
async fn an_allowed_name_that_leads_to_the_metadata_service_is_not_asked() {
    let server = AgendaServer::start(|_, _| answer(200, "here")).await;
    let network = Arc::new(ToyNetwork::leading_to(server.address));
    network.say("files.example", &["10.0.0.7"]);
    network.say("metadata.example", &["169.254.169.254"]);
    network.say("flips.example", &["10.0.0.7"]);
    network.say("flips.example", &["169.254.169.254"]);
    let mut config = crate::support::agenda_server::config("samples");
    config.token = "s3cret".to_owned().into();
    config.allowed_hosts = ["files.example", "metadata.example", "flips.example"].map(str::to_owned).to_vec();
    let home = "https://agenda.example/".parse().expect("an address");
    let upstream = Upstream::over(Arc::clone(&network) as _, &config, Some(home)).expect("a client");
    let open = async |host: &str| upstream.open(&format!("http://{host}/x").parse().expect("an address"), None).await;

    assert!(matches!(open("files.example").await, Ok(Opened::File(_))), "allowed hosts may be private");
    assert!(matches!(open("metadata.example").await, Err(LinkError::Refused(_))));
    assert!(matches!(open("flips.example").await, Ok(Opened::File(_))));
    // The connection that was looked at may be used again; a new one is looked at again.
    let other = Upstream::over(Arc::clone(&network) as _, &config, None).expect("a client");
    let flipped = other.open(&"http://flips.example/x".parse().expect("an address"), None).await;
    assert!(matches!(&flipped, Err(LinkError::Refused(reason)) if !reason.contains("s3cret")), "{flipped:?}");
    assert!(matches!(open("elsewhere.example").await, Err(LinkError::Refused(_))));
    assert_eq!(network.dialled(), ["10.0.0.7", "10.0.0.7"]);
    assert!(server.seen().iter().all(|seen| seen.authorization.is_none()), "the token is the home's");
}
