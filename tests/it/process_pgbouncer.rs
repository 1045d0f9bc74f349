//! PostgreSQL behind PgBouncer in transaction mode: two instances work with a direct way for what needs a session, and are refused without one.

use crate::support::{Process, TestDatabase, eventually, pgbouncer::PgBouncer, process};
use futures::future::join_all;
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    store::{Db, Error, Options, Tx, setting},
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_work_behind_it() {
    let database = TestDatabase::postgres().await;
    let bouncer = PgBouncer::start(&database.url).await;
    let data_dir = database.data_dir.path().join("data").display().to_string();
    let pooled = bouncer.url(&database.url);
    let environment = [
        ("PROTOCOL_BRIDGE__DATA_DIR", data_dir.as_str()),
        ("PROTOCOL_BRIDGE__DATABASE__URL", &pooled),
        ("PROTOCOL_BRIDGE__DATABASE__LISTEN_URL", &database.url),
        ("PROTOCOL_BRIDGE__ENGINE__DEMO", "true"),
        ("PROTOCOL_BRIDGE__LEGACY__POLL_INTERVAL", "30s"),
        ("PROTOCOL_BRIDGE__GENERATOR__FORMATS", "[\"json\"]"),
    ];
    // At the same moment: both want to migrate.
    let start = || Process::start(&[], &environment, database.data_dir.path());
    let (one, two) = tokio::join!(start(), start());
    let submit = |number: usize| {
        let process = if number.is_multiple_of(2) { &one } else { &two };
        let body = json!({ "kind": "demo", "payload": { "sleepMs": number % 50, "failUntilAttempt": 1 + number % 2 }, "idempotencyKey": number.to_string() });
        async move { assert_eq!(process.post("/api/tasks", &body).await.0, 202) }
    };
    join_all((0..100).map(submit)).await;
    assert_eq!(one.post("/task", &json!({ "agendaId": "council-2026-11" })).await.0, 202);
    // goes with v1: begin
    let (status, protocol) = two.post("/api/v1/protocol/merge/byAgenda/council-2026-11", &json!({})).await;
    assert_eq!(status, 200, "{protocol}");
    // goes with v1: end
    let unfinished = "SELECT COUNT(*) FROM task WHERE status <> 'COMPLETED'";
    eventually(LIMIT, "every task completes", async || database.number(unfinished).await == 0).await;
    for process in [one, two] {
        let log = process.log();
        assert!(!log.contains("prepared statement") && !log.contains("\"ERROR\""), "{log}\n{}", bouncer.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_direct_way_the_start_is_refused_with_what_to_set() {
    let database = TestDatabase::postgres().await;
    let bouncer = PgBouncer::start(&database.url).await;
    let pooled = bouncer.url(&database.url);
    for (listen_url, said) in
        [("", "set database.listen_url to the PostgreSQL server itself"), (&pooled, "database.listen_url goes through a connection pooler")]
    {
        let environment = [("PROTOCOL_BRIDGE__DATABASE__URL", pooled.as_str()), ("PROTOCOL_BRIDGE__DATABASE__LISTEN_URL", listen_url)];
        let output = process::run(&["--listen", "127.0.0.1:0"], &environment, database.data_dir.path());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(said), "{stderr}");
    }
}

async fn show(tx: &mut Tx<'_>, name: &str) -> Result<String, Error> {
    let Tx::Postgres(connection, _) = tx else { unreachable!("a test of PostgreSQL") };
    Ok(sqlx::raw_sql(AssertSqlSafe(format!("SHOW {name}"))).fetch_one(&mut **connection).await?.try_get(0)?)
}

/// Transactions bring their limits along and leave none behind in sessions that others use next.
#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_behind_it_and_do_not_leak() {
    const LIMITS: [(&str, &str); 3] =
        [("lock_timeout", "5s"), ("idle_in_transaction_session_timeout", "10s"), ("statement_timeout", "30s")];
    let database = TestDatabase::postgres().await;
    let bouncer = PgBouncer::start(&database.url).await;
    let options = Options {
        url: bouncer.url(&database.url),
        listen_url: Some(database.url.clone()),
        ..database.options(Clock::system(), Entropy::seeded(1))
    };
    let db = Db::open(options).await.expect("it opens");
    for (name, limit) in LIMITS {
        assert_eq!(db.transaction("test", move |tx| Box::pin(show(tx, name))).await.expect("it commits"), limit);
        assert_eq!(db.read("test", move |tx| Box::pin(show(tx, name))).await.expect("it reads"), limit);
    }
    // Many at once, so that statements meet sessions in which others were prepared before.
    let busy = (0..200).map(|number: usize| {
        let db = db.clone();
        async move {
            let key = format!("key {}", number % 20);
            db.transaction("test", move |tx| {
                let key = key.clone();
                Box::pin(async move {
                    setting::put(tx, &key, "there").await?;
                    setting::get(tx, &key).await
                })
            })
            .await
        }
    });
    for answer in join_all(busy).await {
        assert_eq!(answer.expect("it commits").as_deref(), Some("there"));
    }
    let mut other = PgConnection::connect_with(
        &bouncer.url(&database.url).parse::<sqlx::postgres::PgConnectOptions>().unwrap().extra_float_digits(None),
    )
    .await
    .expect("the pooler answers");
    for (name, _) in LIMITS {
        let found: String = sqlx::raw_sql(AssertSqlSafe(format!("SHOW {name}"))).fetch_one(&mut other).await.unwrap().try_get(0).unwrap();
        assert_eq!(found, "0", "{name}");
    }
    db.close().await;
}
