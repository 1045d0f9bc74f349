//! `doctor`: what it says of a service that is well, of one that never ran, of one around which everything is down, and of documents that are not what they were.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer},
    eventually,
    nats::Nats,
    on_both_databases,
    process::run,
};
use serde_json::{Value, json};
use std::{
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, Instant},
};

pub const LIMIT: Duration = Duration::from_mins(2);
/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// The doctor's exit code and report.
pub fn doctor(database: &TestDatabase, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, Value) {
    let folder = database.data_dir.path();
    let data_dir = folder.join("data").display().to_string();
    let all = [&["doctor", "--json", "--database-url", &database.url, "--data-dir", &data_dir], arguments].concat();
    let Output { status, stdout, stderr } = run(&all, environment, folder);
    let text = String::from_utf8(stdout).expect("UTF-8");
    let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{}", String::from_utf8_lossy(&stderr)));
    (status.code(), report)
}

/// Each check's verdict.
fn verdicts(report: &Value) -> Vec<(&str, &str)> {
    let checks = report["checks"].as_array().expect("a list");
    checks.iter().map(|check| (check["name"].as_str().expect("a name"), check["verdict"].as_str().expect("a verdict"))).collect()
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["checks"].as_array().expect("a list").iter().find(|check| check["name"] == name).expect("the check")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Generates an agenda's protocol, and answers with the task.
pub async fn generated(process: &Process, agenda: &str) -> Value {
    let (_, task) = process.post("/task", &json!({ "agendaId": agenda })).await;
    let link = task["links"]["status"].as_str().expect("a link").to_owned();
    eventually(LIMIT, "it completes", async || process.json(&link).await["status"] == "COMPLETED").await;
    process.json(&link).await
}

on_both_databases! {
    async fn all_is_well_beside_a_server_and_nothing_is_changed(database: TestDatabase) {
        // Nothing is there yet, and nothing is made.
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["healthy"]), (Some(0), &true.into()), "{report}");
        assert_eq!(check(&report, "store")["verdict"], "warning");
        assert_eq!(check(&report, "documents")["verdict"], "skipped");
        assert_eq!(files(database.data_dir.path()), [] as [PathBuf; 0]);

        let mut process = Process::serve(&database, &[]).await;
        generated(&process, "council-2026-11").await;
        let before = files(&database.data_dir.path().join("data"));
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!(code, Some(0), "{report}");
        assert!(verdicts(&report).iter().all(|(_, verdict)| *verdict == "ok"), "{report}");
        assert_eq!(verdicts(&report).iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["config", "database", "schema", "transport", "store", "clock", "disk", "fonts", "agendas", "documents"]);
        assert_eq!(report["documents"], json!({ "whole": 4, "missing": {"count": 0, "blobs": []}, "altered": {"count": 0, "blobs": []},
            "unreferenced": {"count": 0, "blobs": []} }));
        assert_eq!(files(&database.data_dir.path().join("data")), before);
        assert!(check(&report, "schema")["found"].as_str().is_some_and(|found| found.starts_with("all ")), "{report}");

        // The same with nobody there: not even a log of SQLite's is left behind.
        process.interrupt();
        process.ended(LIMIT).await;
        let before = files(database.data_dir.path());
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["documents"]["whole"]), (Some(0), &4.into()), "{report}");
        assert_eq!(files(database.data_dir.path()), before);
    }
}

on_both_databases! {
    async fn documents_that_are_missing_altered_or_nobodys_are_named(database: TestDatabase) {
        let process = Process::serve(&database, &[]).await;
        generated(&process, "council-2026-11").await;
        let store = database.data_dir.path().join("data/documents");
        let blobs = database.fetch("SELECT blob FROM document ORDER BY format").await;
        let [missing, altered] = [&blobs[0][0], &blobs[1][0]].map(|blob| blob.as_str().expect("a text").to_owned());
        std::fs::remove_file(store.join(&missing)).expect("it was there");
        let mut bytes = std::fs::read(store.join(&altered)).expect("it is there");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(store.join(&altered), bytes).expect("our own folder");
        let nobodys = format!("sha256/00/{}", "0".repeat(64));
        std::fs::create_dir_all(store.join("sha256/00")).expect("our own folder");
        std::fs::write(store.join(&nobodys), "x").expect("our own folder");

        assert_eq!(doctor(&database, &[], &[]).0, Some(0), "they are looked at only when asked for");
        let (code, report) = doctor(&database, &["--documents"], &[]);
        assert_eq!((code, &report["healthy"]), (Some(1), &false.into()), "{report}");
        let of = |kind: &str| report["documents"][kind]["blobs"].clone();
        assert_eq!((of("missing"), of("altered"), of("unreferenced")), (json!([missing]), json!([altered]), json!([nobodys])));
        assert!(check(&report, "documents")["advice"].as_str().is_some_and(|advice| advice.contains("backup")), "{report}");
    }
}

on_both_databases! {
    async fn what_keeps_the_service_from_starting_is_found(database: TestDatabase) {
        let mut process = Process::serve(&database, &[("PROTOCOL_BRIDGE__SHUTDOWN__ANNOUNCE", "0s")]).await;
        process.terminate();
        assert!(process.ended(LIMIT).await.success());
        let id = database.data_dir.path().join("data/documents/store-id");
        let ours = std::fs::read_to_string(&id).expect("it has one");
        std::fs::write(&id, "somebody else's\n").expect("our own folder");
        let newest = database.number("SELECT MAX(version) FROM _sqlx_migrations").await;
        database.execute(&format!("DELETE FROM _sqlx_migrations WHERE version = {newest}")).await;
        let (code, report) = doctor(&database, &[], &[("PROTOCOL_BRIDGE__DATABASE__MIGRATE", "off")]);
        assert_eq!((code, &check(&report, "store")["verdict"]), (Some(1), &"failed".into()), "{report}");
        assert_eq!(check(&report, "schema")["verdict"], "failed", "{report}");
        assert!(check(&report, "schema")["advice"].as_str().is_some_and(|advice| advice.contains("protocol-bridge migrate")), "{report}");
        std::fs::write(&id, ours).expect("our own folder");
        let (code, report) = doctor(&database, &[], &[]);
        assert_eq!((code, &check(&report, "schema")["verdict"]), (Some(0), &"warning".into()), "{report}");
        database.execute(&format!("UPDATE _sqlx_migrations SET version = 9999 WHERE version = {}", newest - 1)).await;
        let (code, report) = doctor(&database, &[], &[]);
        assert_eq!((code, &check(&report, "schema")["verdict"]), (Some(1), &"failed".into()), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_everything_down_each_thing_is_named_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let closed = || std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let database = TestDatabase {
        url: format!("postgres://bridge:hunter2@{}/bridge", silent.local_addr().expect("an address")),
        dialect: protocol_bridge::store::Dialect::Postgres,
        data_dir: folder,
    };
    let (nats, agendas) = (format!("nats://s3cret@{}", closed()), format!("http://{}/{{agendaId}}?sig=s3cret", closed()));
    // The store is a file where a folder should be.
    std::fs::write(database.data_dir.path().join("documents"), "").expect("our own folder");
    let documents = database.data_dir.path().join("documents").display().to_string();
    let environment = [
        ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", nats.as_str()),
        ("PROTOCOL_BRIDGE__AGENDA__SOURCE", &agendas),
        ("PROTOCOL_BRIDGE__DOCUMENTS__STORE", &documents),
        ("PROTOCOL_BRIDGE__ENGINE__MIN_FREE_SPACE", "1000TiB"),
    ];
    let start = Instant::now();
    let (code, report) = doctor(&database, &["--documents"], &environment);
    assert!(start.elapsed() < Duration::from_secs(100), "{:?}", start.elapsed());
    assert_eq!(code, Some(1), "{report}");
    let failed: Vec<&str> = verdicts(&report).into_iter().filter(|(_, verdict)| *verdict == "failed").map(|(name, _)| name).collect();
    assert_eq!(failed, ["database", "transport", "store", "disk", "agendas", "documents"], "{report}");
    assert_eq!(
        (&check(&report, "schema")["verdict"], &check(&report, "clock")["verdict"]),
        (&"skipped".into(), &"skipped".into()),
        "{report}"
    );
    assert!(check(&report, "agendas")["found"].as_str().is_some_and(|found| found.ends_with("could not be connected to")), "{report}");
    assert_eq!(check(&report, "fonts")["verdict"], "ok", "{report}");
    for finding in report["checks"].as_array().expect("a list").iter().filter(|finding| finding["verdict"] == "failed") {
        assert!(finding["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{finding}");
    }
    assert!(!report.to_string().contains("hunter2") && !report.to_string().contains("s3cret"), "{report}");

    let (code, report) = doctor(&database, &[], &[("PROTOCOL_BRIDGE__HTTP__LISTEN", "nowhere")]);
    assert_eq!(
        (code, &check(&report, "config")["verdict"], &check(&report, "disk")["verdict"]),
        (Some(1), &"failed".into(), &"skipped".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_and_consumer_are_as_expected_or_it_is_said() {
    let nats = Nats::start().await;
    let database = TestDatabase::postgres().await;
    let environment = [("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", nats.url())];
    let environment: Vec<(&str, &str)> = environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let transport = || check(&doctor(&database, &[], &environment).1, "transport").clone();
    assert_eq!(transport()["verdict"], "warning", "nothing is there yet");
    let process = Process::serve(&database, &environment).await;
    assert_eq!(transport()["verdict"], "ok", "{}", transport());
    drop(process);
    nats.stream().await.delete_consumer(&crate::support::nats::names().consumer).await.expect("it was there");
    assert!(transport()["found"].as_str().is_some_and(|found| found.contains("consumer")), "{}", transport());
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_may_not_be_written_to_are_found_before_the_first_start_and_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).expect("our own folder");
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own");
    mode(folder.path(), 0o755);
    // Root may write everywhere, so that somebody else looks.
    let program = folder.path().join("protocol-bridge");
    std::fs::copy(env!("CARGO_BIN_EXE_protocol-bridge"), &program).expect("a copy that anyone can run");
    let look = || {
        let mut command = std::process::Command::new(&program);
        command.args(["doctor", "--json", "--data-dir"]).arg(closed.join("data")).env_clear().current_dir(folder.path());
        if rustix::process::getuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let Output { status, stdout, stderr } = command.output().expect("it can be started");
        let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&stderr)));
        let found = ["database", "store"].map(|name| check(&report, name)["found"].as_str().expect("a text").to_owned());
        (status.code(), verdicts(&report).into_iter().filter(|(_, verdict)| *verdict == "failed").count(), found)
    };
    mode(&closed, 0o555);
    let (code, failed, [database, store]) = look();
    assert_eq!((code, failed), (Some(1), 2), "{database}; {store}");
    assert!(database.contains("cannot be made in") && store.contains("cannot be made in"), "{database}; {store}");

    mode(&closed, 0o755);
    let data = closed.join("data");
    let mut process = Process::start(&["--data-dir", data.to_str().expect("UTF-8")], &[], folder.path()).await;
    process.interrupt();
    process.ended(LIMIT).await;
    for file in files(&data) {
        mode(&file, 0o444);
    }
    for folder in [data.join("documents"), data] {
        mode(&folder, 0o555);
    }
    let (code, failed, [database, store]) = look();
    assert_eq!((code, failed), (Some(1), 2), "{database}; {store}");
    assert!(database.contains("cannot be written to") && store.contains("ermission denied"), "{database}; {store}");
}

/// What the source of agendas says of one that nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_has_everything_or_refuses_us_is_not_taken_for_the_agenda_service() {
    let database = TestDatabase::sqlite().await;
    for (status, verdict, words) in [(404, "ok", "answers"), (200, "warning", "even for"), (401, "failed", "401"), (503, "failed", "503")] {
        let agendas = AgendaServer::start(move |_, _| answer(status, "<html>")).await;
        let source = agendas.url("/agenda/{agendaId}?sig=s3cret");
        let (_, report) = doctor(&database, &[], &[("PROTOCOL_BRIDGE__AGENDA__SOURCE", &source)]);
        let finding = check(&report, "agendas");
        assert_eq!(finding["verdict"], verdict, "{finding}");
        assert!(finding["found"].as_str().is_some_and(|found| found.contains(words)), "{finding}");
        assert!(!report.to_string().contains("s3cret"), "{finding}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_differ_and_a_disk_that_fills_up_are_told_in_time() {
    let database = TestDatabase::postgres().await;
    let name = database.url.rsplit('/').next().expect("a name");
    database
        .execute(&format!(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '90.5 s' $$; \
             ALTER DATABASE {name} SET search_path = public, pg_catalog"
        ))
        .await;
    let free = rustix::fs::statvfs(database.data_dir.path()).expect("our own folder");
    let two_thirds = format!("{}B", free.f_bavail * free.f_frsize * 2 / 3);
    let (code, report) = doctor(&database, &[], &[("PROTOCOL_BRIDGE__ENGINE__MIN_FREE_SPACE", &two_thirds)]);
    assert_eq!(code, Some(0), "both are for somebody to look at: {report}");
    for (name, words) in [("clock", "differ by 90."), ("disk", "free at")] {
        let finding = check(&report, name);
        assert_eq!(finding["verdict"], "warning", "{finding}");
        assert!(finding["found"].as_str().is_some_and(|found| found.contains(words)), "{finding}");
    }
}
