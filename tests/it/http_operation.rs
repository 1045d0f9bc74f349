//! Health, metrics, agendas.

use crate::support::{Service, TestDatabase, on_both_databases};
use std::time::Duration;

on_both_databases! {
    async fn readiness_says_why(database: TestDatabase) {
        let service = Service::start(database).await;
        let text = service.get("/readyz?verbose").send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "[+]database ok\n[+]schema ok\n[+]draining ok\n[+]claiming ok\nok\n");
        service.draining.cancel();
        let response = service.get("/readyz?verbose").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()["connection"].to_str().unwrap()), (503, "close"));
        assert!(response.text().await.unwrap().contains("[-]draining failed"));
        assert_eq!(service.json(service.post("/api/tasks").json(&serde_json::json!({ "payload": {} }))).await.0, 202, "everything is still served");
    }

    // Case M-05, in small.
    async fn made_up_paths_methods_and_names_add_no_series(database: TestDatabase) {
        let service = Service::start(database).await;
        service.protocol_of("1").await;
        rubbish(&service, 0..6).await;
        let before = service.metrics.render().lines().count();
        rubbish(&service, 6..900).await;
        assert_eq!(service.metrics.render().lines().count(), before);
        let text = service.get("/metrics").send().await.unwrap().text().await.unwrap();
        assert!(text.contains("protocol_bridge_http_request_seconds_count{route=\"/task/{taskId}/status\",method=\"GET\",status=\"5xx\"} 0"), "at 0 from the start");
        assert!(text.contains("protocol_bridge_legacy_requests_total{caller=\"other\",outcome=\"gone\"} 0")); // goes with v1
    }

    async fn a_held_call_shows_how_long_calls_live(database: TestDatabase) {
        let off = Service::start(database).await;
        assert_eq!(off.get("/debug/hold?seconds=0").send().await.unwrap().status(), 404);
        let service = Service::configured(off.stop().await, &[("HTTP__DEBUG_HOLD", "true")]).await;
        let start = std::time::Instant::now();
        let held = service.get("/debug/hold?seconds=1").send().await.unwrap();
        assert_eq!((held.status().as_u16(), held.text().await.unwrap().as_str()), (200, "held for 1 s\n"));
        assert!(start.elapsed() >= Duration::from_secs(1));
        for wrong in ["", "?seconds=3601", "?seconds=-1", "?seconds=x", "?seconds=1&more=1"] {
            assert_eq!(service.get(&format!("/debug/hold{wrong}")).send().await.unwrap().status(), 400, "{wrong}");
        }
        let held: Vec<_> = (0..20).map(|_| tokio::spawn(service.get("/debug/hold?seconds=600").send())).collect();
        crate::support::eventually(Duration::from_secs(20), "eight are held and no more", || async {
            held.iter().filter(|call| call.is_finished()).count() == 12
        }).await;
        service.shutdown.begin();
        let mut statuses = Vec::new();
        for call in held {
            let answer = crate::support::within(Duration::from_secs(5), "a drain lets go", call).await.unwrap().unwrap();
            statuses.push(answer.status().as_u16());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [vec![429; 12], vec![503; 8]].concat());
    }

    async fn an_agenda_is_checked_without_a_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, good) = service.json(service.get("/api/agendas/9/check")).await;
        assert_eq!((status, &good["ready"], &good["errors"]), (200, &true.into(), &serde_json::json!([])), "{good}");
        let (status, wrong) = service.json(service.get("/api/agendas/wrong-9/check")).await;
        assert_eq!((status, &wrong["ready"]), (200, &false.into()), "{wrong}");
        assert!(wrong["errors"][0]["pointer"].as_str().unwrap().starts_with("/questions/0"), "{wrong}");
        let (_, german) = service.json(service.get("/api/agendas/wrong-9/check").header("Accept-Language", "fr, de-AT;q=0.9, en;q=0.5")).await;
        assert!(german["errors"][0]["detail"].as_str().unwrap().starts_with("Tagesordnungspunkt 1 "), "{german}");
        assert_eq!(service.json(service.get("/api/agendas/unknown-9/check")).await.0, 404);
        let (status, none) = service.json(service.get("/api/agendas")).await;
        assert_eq!((status, &none["items"], &none["nextCursor"]), (200, &serde_json::json!([]), &serde_json::Value::Null), "an HTTP source cannot list");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
    }

    async fn registers_tell_what_is_missing(database: TestDatabase) {
        let service = Service::start(database).await;
        let number: u64 = service.protocol_of("5").await["number"].as_str().and_then(|number| number.parse().ok()).expect("a counted number");
        service
            .database
            .execute(&format!("INSERT INTO protocol_number (body, year, number, agenda_id, reserved_us) SELECT body, year, '{}', 'x', 1 FROM protocol_number", number + 3))
            .await;
        let (status, list) = service.json(service.get("/api/registers?year=2026")).await;
        assert_eq!((status, list["items"].as_array().map(Vec::len)), (200, Some(1)), "{list}");
        let register = &list["items"][0];
        assert_eq!((&register["given"], &register["unused"][0]["agendaId"]), (&2.into(), &"x".into()), "{list}");
        assert_eq!(register["missing"], serde_json::json!([{ "from": number + 1, "to": number + 2 }]), "{list}");
        for wrong in ["", "?year=x", "?year=0"] {
            assert_eq!(service.json(service.get(&format!("/api/registers{wrong}"))).await.0, 400, "{wrong}");
        }
    }

    // Case H-06: probes go out before a NAT forgets the connection, and a client that has vanished is noticed.
    async fn accepted_sockets_are_kept_alive(database: TestDatabase) {
        let service = Service::start(database).await;
        let client = tokio::net::TcpStream::connect(service.address).await.unwrap();
        let (ours, theirs) = (service.address.port(), client.local_addr().unwrap().port());
        // Linux lists the timer of each socket; 02 is the keepalive timer, and the number after it how many hundredths of a second are left.
        crate::support::eventually(Duration::from_secs(5), "the accepted socket has a keepalive timer under 350 s", || async {
            let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
            table.lines().filter_map(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let port = |address: &str| address.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
                (port(fields.get(1)?)? == ours && port(fields.get(2)?)? == theirs).then(|| fields[5].to_owned())
            }).any(|timer| timer.strip_prefix("02:").is_some_and(|left| u64::from_str_radix(left, 16).is_ok_and(|left| left < 350 * 100)))
        }).await;
    }

    async fn a_drain_ends_though_connections_idle_or_dawdle(database: TestDatabase) {
        use tokio::{io::{AsyncReadExt as _, AsyncWriteExt as _}, net::TcpStream};
        let service = Service::start(database).await;
        let mut idle = TcpStream::connect(service.address).await.unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 1024];
        assert!(idle.read(&mut answer).await.unwrap() > 0);
        let mut half = TcpStream::connect(service.address).await.unwrap();
        half.write_all(b"POST /task HTTP/1.1\r\n").await.unwrap();
        service.shutdown.begin();
        crate::support::within(Duration::from_secs(8), "everything has stopped", service.shutdown.finished()).await;
    }
}

/// Requests that nobody sends who means well: made-up paths, methods, hosts, agents, callers, keys, callback hosts and agendas.
async fn rubbish(service: &Service, numbers: std::ops::Range<u32>) {
    use futures::StreamExt as _;
    let requests = numbers.map(|n| {
        let request = match n % 6 {
            0 => service.request(reqwest::Method::from_bytes(format!("FOO{n}").as_bytes()).unwrap(), "/task"),
            1 => service.get(&format!("/made/up/{n}")),
            2 => service.merge(&format!("%00{n}")), // goes with v1
            3 => service.get("/livez").header("host", format!("host-{n}.example.org")),
            4 => service
                .post("/task")
                .header("idempotency-key", format!("key-{n}"))
                .json(&serde_json::json!({ "agendaId": format!("..{n}"), "callbackUrl": format!("https://hook-{n}.example.org") })),
            _ => service.get(&format!("/task/{n}/status")),
        };
        request.header("user-agent", format!("agent-{n}/1")).header("x-caller", format!("caller-{n}")).send()
    });
    futures::stream::iter(requests).buffer_unordered(16).for_each(|answer| async { drop(answer.unwrap().bytes().await) }).await;
}

/// Case M-05, 100,000 of them: series stay as many, memory stays flat, `/metrics` stays quick. Run by hand: `cargo nextest run --run-ignored only -E 'test(hundred_thousand)'`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
#[expect(clippy::print_stderr, reason = "what it measures is what it is for")]
async fn a_hundred_thousand_made_up_requests_cost_nothing_that_stays() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let service = Service::start(TestDatabase::sqlite().await).await;
    rubbish(&service, 0..10_000).await;
    let (series, memory) = (service.metrics.render().lines().count(), resident());
    rubbish(&service, 10_000..110_000).await;
    let start = std::time::Instant::now();
    let text = service.get("/metrics").send().await.unwrap().text().await.unwrap();
    let (took, after) = (start.elapsed(), resident());
    eprintln!("{series} series, {memory} KiB before, {after} KiB after, /metrics {} bytes in {took:?}", text.len());
    assert_eq!(text.lines().count(), series);
    assert!(took < Duration::from_millis(100) && after < memory + 32 * 1024, "{memory} KiB → {after} KiB, {took:?}");
}
