//! Several real processes on one PostgreSQL and one NATS: what one of them holds when it is killed or paused.

use crate::support::{
    Process, TestDatabase,
    agenda_server::{AgendaServer, answer},
    agendas, eventually,
    nats::Nats,
    process, within,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_mins(2);
const LEASE: Duration = Duration::from_secs(2);

async fn node(database: &TestDatabase, nats: &Nats, more: &[(&str, &str)]) -> Process {
    let url = nats.url();
    let environment = [
        ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", url.as_str()),
        ("PROTOCOL_BRIDGE__ENGINE__LEASE", "2s"),
        ("PROTOCOL_BRIDGE__ENGINE__HEARTBEAT", "600ms"),
    ];
    Process::serve(database, &[&environment, more].concat()).await
}

/// Enough questions that typesetting takes seconds.
fn large(id: &str) -> Value {
    let mut agenda = agendas::good();
    agenda["agendaId"] = id.into();
    let question = agenda["questions"][0].clone();
    let questions = (1..=300).map(|order| {
        let mut question = question.clone();
        question["id"] = format!("q{order}").into();
        question["order"] = order.into();
        question["title"] = format!("О вопросе под номером {order}").into();
        question["decision"] = json!([{ "text": format!("Принять к исполнению пункт {order}.") }]);
        question
    });
    agenda["questions"] = questions.collect();
    agenda
}

/// Case O-07, at this test's lease: what a killed node holds runs elsewhere within the lease and 5 s.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_node_holds_runs_elsewhere_in_time() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
    let mut first = node(&database, &nats, &[]).await;
    let second = node(&database, &nats, &[("PROTOCOL_BRIDGE__ENGINE__MAX_RUNNING", "1")]).await;
    // The only place of the second is taken, so that the first holds the rest.
    second.post("/api/tasks", &json!({ "kind": "demo", "payload": { "sleepMs": 1500 } })).await;
    for _ in 0..20 {
        let (status, task) = first.post("/api/tasks", &json!({ "kind": "demo", "payload": { "sleepMs": 60_000 } })).await;
        assert_eq!(status, 202, "{task}");
    }
    let running = "SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS' AND payload LIKE '%60000%'";
    eventually(LIMIT, "the first holds them", async || database.number(running).await >= 19).await;
    drop(second);
    first.kill();
    let killed = Instant::now();
    let third = node(&database, &nats, &[]).await;
    let started = Instant::now();
    let again = "SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS' AND claim_no = 2";
    eventually(LIMIT, "they run elsewhere", async || database.number(again).await >= 19).await;
    // The third may have been up later than the leases ran out.
    let late = killed.elapsed().saturating_sub((started - killed).max(LEASE));
    assert!(late < Duration::from_secs(5), "{late:?} after they could have run again");
    drop(third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_paused_for_three_leases_is_refused() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
    let agenda_service = AgendaServer::start(|_, _| answer(200, large("large").to_string())).await;
    let source = agenda_service.url("/{agendaId}");
    let agenda = [("PROTOCOL_BRIDGE__AGENDA__SOURCE", source.as_str())];
    let first = node(&database, &nats, &agenda).await;
    let (_, submitted) = first.post("/task", &json!({ "agendaId": "large" })).await;
    let status = submitted["links"]["status"].as_str().expect("a link").to_owned();
    eventually(LIMIT, "the first merges", async || first.json(&status).await["phase"] == "MERGE").await;
    first.pause();
    let paused = Instant::now();
    assert_eq!(database.fetch("SELECT status FROM task").await, [[json!("IN_PROGRESS")]], "it was paused in the middle");

    let second = node(&database, &nats, &agenda).await;
    eventually(LIMIT, "the second finishes it", async || second.json(&status).await["status"] == "COMPLETED").await;
    eventually(LIMIT, "three leases are over", async || paused.elapsed() >= 3 * LEASE).await;
    first.go_on();
    eventually(LIMIT, "the first notices", async || first.log().contains("the lease was lost; the attempt is stopped")).await;

    let task = second.json(&status).await;
    assert_eq!((&task["status"], &task["attempt"]), (&json!("COMPLETED"), &json!(2)), "{task}");
    assert_eq!(database.number("SELECT COUNT(*) FROM protocol").await, 1, "one protocol");
    assert_eq!(database.number("SELECT COUNT(*) FROM event").await, 1, "one event");
    let outcomes = database.fetch("SELECT outcome FROM attempt ORDER BY claim_no").await;
    assert_eq!(outcomes, [[json!("worker-lost")], [json!("completed")]]);
    // Both go on working.
    for process in [&first, &second] {
        let (_, task) = process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
        let status = task["links"]["status"].as_str().expect("a link").to_owned();
        eventually(LIMIT, "it works", async || process.json(&status).await["status"] == "COMPLETED").await;
    }
}

/// What the address of NATS holds is nobody's business, and a wrong password keeps nothing from starting.
#[tokio::test(flavor = "multi_thread")]
async fn the_login_at_nats_is_used_and_never_logged() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start_with(&["--user", "bridge", "--pass", "s3cr3t-pass"]).await);
    for (password, up) in [("s3cr3t-pass", "1"), ("wr0ng-pass", "0")] {
        let secret = database.data_dir.path().join("nats-url");
        std::fs::write(&secret, format!("nats://bridge:{password}@127.0.0.1:{}\n", nats.port)).expect("written");
        let environment = [
            ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT_FILE", secret.to_str().expect("a path")),
            ("PROTOCOL_BRIDGE__TELEMETRY__LOG", "debug,async_nats=trace"),
        ];
        let process = Process::serve(&database, &environment).await;
        let (_, task) = process.post("/api/tasks", &json!({ "kind": "demo", "payload": {} })).await;
        let status = task["links"]["status"].as_str().expect("a link").to_owned();
        eventually(LIMIT, "it runs", async || process.json(&status).await["status"] == "COMPLETED").await;
        let metrics = process.client.get(format!("{}/metrics", process.url)).send().await.expect("an answer").text().await.expect("a text");
        assert!(metrics.contains(&format!("protocol_bridge_transport_up {up}")), "{password}");
        let log = process.log();
        assert!(!log.contains(password), "{:?}", log.lines().find(|line| line.contains(password)));
        assert_eq!(log.contains("starting without NATS"), up == "0", "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nats_holds_under_our_names_and_cannot_be_used_ends_the_start_with_words() {
    let (database, nats) = (TestDatabase::postgres().await, Nats::start().await);
    let foreign =
        async_nats::jetstream::stream::Config { name: "foreign".to_owned(), subjects: vec!["council.>".to_owned()], ..Default::default() };
    nats.context().await.create_stream(foreign).await.expect("a stream of somebody else's");
    let (url, database_url, folder) = (nats.url(), database.url.clone(), database.data_dir.path().to_owned());
    let start = move || {
        let environment = [
            ("PROTOCOL_BRIDGE__HTTP__LISTEN", "127.0.0.1:0"),
            ("PROTOCOL_BRIDGE__DATABASE__URL", database_url.as_str()),
            ("PROTOCOL_BRIDGE__ENGINE__TRANSPORT", url.as_str()),
            ("PROTOCOL_BRIDGE__ENGINE__NATS_PREFIX", "council"),
        ];
        process::run(&[], &environment, &folder)
    };
    let output = within(LIMIT, "it ends", tokio::task::spawn_blocking(start)).await.expect("it ran");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("council-tasks") && said.contains("overlap") && said.contains("engine.nats_prefix"), "{said}");
}
