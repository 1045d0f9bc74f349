//! The document store in a bucket: what it keeps, what it says when it is away, and that nothing else depends on where it is.

use crate::{
    cli_doctor::doctor,
    generator_node::{LIMIT, Setup},
    support::{
        Service, TestDatabase,
        agenda_server::{AgendaServer, answer},
        agendas::with,
        eventually, on_both_databases,
        s3::{KEY, S3Server, SECRET},
        server, within,
    },
};
use bytes::Bytes;
use futures::TryStreamExt as _;
use protocol_bridge::{
    app::{App, StartError, Stranger},
    base::chain::chain,
    domain::{failure::FailureCode, protocol::Format, task::Status},
    generator::documents::{DocumentStore, StoreError},
};
use serde_json::json;
use std::time::{Duration, Instant};

fn store(server: &S3Server, scratch: &tempfile::TempDir) -> DocumentStore {
    DocumentStore::open(&server.documents("council"), scratch.path()).expect("a store")
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_go_in_and_come_out_as_they_were() {
    let (server, scratch) = (S3Server::start(), tempfile::tempdir().unwrap());
    let store = store(&server, &scratch);
    assert_eq!(store.place(), "s3://protocols/council");
    assert!(store.is_empty().await.unwrap());

    let small = store.put(Bytes::from_static("Протокол".as_bytes())).await.unwrap();
    assert_eq!(store.put(Bytes::from_static("Протокол".as_bytes())).await.unwrap(), small, "a put always puts");
    assert_eq!(store.read(&small.blob).await.unwrap().unwrap(), "Протокол");
    let part: Vec<Bytes> = store.get(&small.blob, Some(2..4)).await.unwrap().unwrap().try_collect().await.unwrap();
    assert_eq!(part.concat(), "р".as_bytes());
    assert!(server.file("council", &small.blob).is_file());

    // Larger than one part: it goes in pieces and is never whole in memory.
    let path = scratch.path().join("large");
    let large: Vec<u8> = (0..20_000_000_u32).map(|n| n.to_be_bytes()[usize::try_from(n % 4).unwrap()]).collect();
    std::fs::write(&path, &large).unwrap();
    let stored = store.put_file(&path).await.unwrap();
    assert_eq!(stored.bytes, 20_000_000);
    let copy = scratch.path().join("copy");
    assert!(store.copy_to(&stored.blob, &copy).await.unwrap());
    assert!(std::fs::read(&copy).unwrap() == large, "the copy is the file");

    let mut listed: Vec<String> = store.list().map_ok(|(blob, _)| blob).try_collect().await.unwrap();
    listed.sort();
    let mut put = [small.blob.clone(), stored.blob.clone()];
    put.sort();
    assert_eq!(listed, put);
    assert!(store.modified(&small.blob).await.unwrap().is_some());
    store.delete(&small.blob).await.unwrap();
    store.delete(&small.blob).await.unwrap();
    assert!(store.read(&small.blob).await.unwrap().is_none() && store.modified(&small.blob).await.unwrap().is_none());
    assert!(!store.copy_to(&small.blob, &copy).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_rotted_is_an_error() {
    let (server, scratch) = (S3Server::start(), tempfile::tempdir().unwrap());
    let store = store(&server, &scratch);
    let stored = store.put(Bytes::from_static(b"abc")).await.unwrap();
    std::fs::write(server.file("council", &stored.blob), "abd").unwrap();
    assert!(matches!(store.read(&stored.blob).await, Err(StoreError::Altered { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_give_an_id_at_once_all_get_the_same() {
    let (server, scratch) = (S3Server::start(), tempfile::tempdir().unwrap());
    let store = store(&server, &scratch);
    let given = futures::future::join_all(["a", "b", "c", "d"].map(|id| store.give_id(id))).await;
    let given: Vec<String> = given.into_iter().map(|id| id.expect("the store answers")).collect();
    assert!(given.iter().all(|id| *id == given[0]), "{given:?}");
    assert_eq!(store.id().await.unwrap().as_ref(), given.first());
}

/// A wrong key, a bucket that is not there, and nobody who listens: told, in time, and without the secret.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_store_is_told() {
    let (mut server, scratch) = (S3Server::start(), tempfile::tempdir().unwrap());
    let mut wrong_key = server.documents("council");
    wrong_key.s3_secret_access_key = "another".into();
    let mut no_bucket = server.documents("council");
    no_bucket.store = "s3://nobody/council".to_owned();
    let put = async |documents: &protocol_bridge::base::config::Documents| {
        let store = DocumentStore::open(documents, scratch.path()).unwrap();
        chain(&store.put(Bytes::from_static(b"x")).await.expect_err("it cannot be stored"))
    };
    let said = put(&wrong_key).await;
    assert!(said.contains("SignatureDoesNotMatch") || said.contains("403"), "{said}");
    // This server makes what a put lacks; others do not. A start lists first.
    let nobodys = DocumentStore::open(&no_bucket, scratch.path()).unwrap();
    assert!(nobodys.is_empty().await.is_err());
    server.stop().await;
    let since = Instant::now();
    let said = put(&server.documents("council")).await;
    assert!(!said.contains(SECRET), "{said}");
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

on_both_databases! {
    async fn a_store_that_is_away_costs_attempts_and_no_task(database: TestDatabase) {
        let mut server = S3Server::start();
        let agendas = AgendaServer::start(|_, _| answer(200, with("/agendaId", json!("a")).to_string())).await;
        let setup = Setup::new(&agendas.url("/{agendaId}")).with(|config| {
            server.configure(config);
            config.engine.max_attempts = 2;
        });
        let node = setup.start(&database).await;
        server.stop().await;
        let lost = node.generate("a").await;
        let failure = lost.failure.expect("a failure");
        assert_eq!((lost.status, failure.code), (Status::Failed, FailureCode::StorageUnavailable));

        server.start_again();
        let task = node.generate("a").await;
        assert_eq!(task.status, Status::Completed, "{:?}", task.failure);
        let protocol = node.protocols("a").await.remove(0);
        let document = &protocol.documents[0];
        let bytes = node.generator.documents().read(&document.blob).await.unwrap().expect("the document");
        assert_eq!(bytes.len() as u64, document.bytes);
        assert!(!database.data_dir.path().join("documents").exists(), "nothing is kept beside the bucket");
    }

    async fn strangers_are_refused_wherever_they_lie(database: TestDatabase) {
        let server = S3Server::start();
        let start = async |prefix: &str| {
            let mut config = server::config(&database);
            config.documents = server.documents(prefix);
            App::start(config).await
        };
        start("council").await.expect("it starts").drain(false).await;
        start("council").await.expect("and again").drain(false).await;
        match start("other").await.expect_err("its documents are elsewhere") {
            StartError::Strangers(stranger @ Stranger::NewStore { .. }) => assert!(stranger.to_string().contains("s3://protocols/other")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_served_from_a_bucket_and_asked_for_again_later_when_that_is_away() {
    let mut server = S3Server::start();
    let service = Service::with(TestDatabase::sqlite().await, &[], |config| {
        server.configure(config);
        config.generator.formats = vec![Format::Json];
    })
    .await;
    let protocol = service.protocol_of("5").await;
    let url = protocol["documents"][0]["url"].as_str().expect("a link");
    let whole = service.get(url).send().await.unwrap();
    assert_eq!(whole.status(), 200);
    let whole = whole.bytes().await.unwrap();
    let part = service.get(url).header("range", "bytes=5-9").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.bytes().await.unwrap()), (206, whole.slice(5..10)));

    // What rotted is not sent to its end: a client sees an answer that breaks off and no altered document.
    let blob = protocol["documents"][0]["sha256"].as_str().map(|sha256| format!("sha256/{}/{sha256}", &sha256[..2])).expect("a digest");
    let mut rotten = whole.to_vec();
    rotten[0] ^= 1;
    std::fs::write(server.file("council", &blob), rotten).unwrap();
    let broken = service.get(url).send().await;
    assert!(match broken {
        Ok(answer) => answer.bytes().await.is_err(),
        Err(_) => true,
    });
    std::fs::write(server.file("council", &blob), &whole).unwrap();

    server.stop().await;
    let since = Instant::now();
    let (status, problem) = service.json(service.get(url)).await;
    assert_eq!((status, problem["type"].as_str()), (503, Some("/problems/unavailable")), "{problem}");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    server.start_again();
    within(LIMIT, "it is served again", async {
        eventually(LIMIT, "200", async || service.get(url).send().await.is_ok_and(|answer| answer.status() == 200)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_a_bucket() {
    let (database, mut server) = (TestDatabase::sqlite().await, S3Server::start());
    let endpoint = format!("http://{}", server.address);
    let environment = [
        ("PROTOCOL_BRIDGE__DOCUMENTS__STORE", "s3://protocols/council"),
        ("PROTOCOL_BRIDGE__DOCUMENTS__S3_ALLOW_HTTP", "true"),
        // What is not configured comes from the variables that everything for S3 knows.
        ("AWS_ENDPOINT_URL_S3", endpoint.as_str()),
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ];
    let (code, report) = tokio::task::block_in_place(|| doctor(&database, &[], &environment));
    let finding = |report: &serde_json::Value| {
        let checks = report["checks"].as_array().expect("a list");
        checks.iter().find(|check| check["name"] == "store").cloned().expect("the check")
    };
    assert_eq!(code, Some(0), "{report}");
    assert_ne!(finding(&report)["verdict"], "failed", "{report}");
    assert!(finding(&report)["found"].as_str().is_some_and(|found| found.contains("s3://protocols/council")), "{report}");
    assert!(server.connections() > 0);

    server.stop().await;
    let (code, report) = tokio::task::block_in_place(|| doctor(&database, &[], &environment));
    assert_eq!((code, &finding(&report)["verdict"]), (Some(1), &"failed".into()), "{report}");
    assert!(finding(&report)["advice"].as_str().is_some_and(|advice| advice.contains("bucket")), "{report}");
}
