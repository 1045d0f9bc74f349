//! What the gauges say on several replicas, and when the database is away from one of them: the same everywhere, and nothing rather than something old.

use crate::support::{Process, TestDatabase, eventually, postgres_proxy::PostgresProxy};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

/// The value of a series, without the names' common beginning; NaN is "not known".
async fn gauge(process: &Process, series: &str) -> f64 {
    let text = process.client.get(format!("{}/metrics", process.url)).send().await.expect("an answer").text().await.expect("a text");
    let line =
        text.lines().find_map(|line| line.strip_prefix(&format!("protocol_bridge_{series} "))).unwrap_or_else(|| panic!("no {series}"));
    line.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_says_the_same_and_one_without_the_database_says_nothing() {
    let database = TestDatabase::postgres().await;
    let one = Process::serve(&database, &[]).await;
    let proxy = PostgresProxy::start(&database.url).await;
    let data_dir = database.data_dir.path().join("data").display().to_string();
    let other = Process::serve(&database.by_way_of(proxy.url(&database.url)), &[("PROTOCOL_BRIDGE__DATA_DIR", &data_dir)]).await;

    let call = one.client.post(format!("{}/api/v1/protocol/merge/byAgenda/no-such-agenda", one.url)).send().await.expect("an answer");
    assert_eq!(call.status(), 404);
    let told = [
        (r#"legacy_calls_today{caller="other"}"#, 1.0),
        (r#"legacy_answers_today{caller="other",outcome="failed"}"#, 1.0),
        (r#"legacy_caller_state{caller="other",state="legacy-only"}"#, 1.0),
        ("legacy_callers_active", 1.0),
        ("legacy_removable", 0.0),
        (r#"legacy_removal_blocked{by="calls"}"#, 1.0),
        (r#"tasks{status="FAILED"}"#, 1.0),
        (r#"tasks{status="PENDING"}"#, 0.0),
        (r#"dead_letters{reason="agenda-not-found"}"#, 1.0),
        (r#"dead_letters{reason="internal"}"#, 0.0),
        ("outbox_unpublished", 0.0),
        ("engine_paused", 0.0),
    ];
    for process in [&one, &other] {
        for (series, value) in told {
            eventually(LIMIT, series, async || (gauge(process, series).await - value).abs() < f64::EPSILON).await;
        }
    }
    let last_call = r#"legacy_last_request_timestamp_seconds{caller="other"}"#;
    let (first, second) = (gauge(&one, last_call).await, gauge(&other, last_call).await);
    assert!(first > 1.7e9 && (first - second).abs() < f64::EPSILON, "{first} and {second}");
    assert!((gauge(&one, r#"legacy_requests_total{caller="other",outcome="failed"}"#).await - 1.0).abs() < f64::EPSILON);
    assert!(gauge(&other, r#"legacy_requests_total{caller="other",outcome="failed"}"#).await < 0.5, "a counter is the process's own");

    proxy.black_hole();
    for (series, value) in told {
        eventually(LIMIT, &format!("{series} is not known any more"), async || gauge(&other, series).await.is_nan()).await;
        assert!((gauge(&one, series).await - value).abs() < f64::EPSILON, "{series} is known where the database is");
    }
    assert!((gauge(&other, last_call).await - second).abs() < f64::EPSILON, "the last call that was seen stays the last one seen");
    assert!(gauge(&one, "gauges_read_timestamp_seconds").await - gauge(&other, "gauges_read_timestamp_seconds").await > 20.0);
    proxy.lift();
    for (series, value) in told {
        eventually(LIMIT, &format!("{series} is known again"), async || (gauge(&other, series).await - value).abs() < f64::EPSILON).await;
    }
}
