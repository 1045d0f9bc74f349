//! Health, metrics, agendas.

use crate::support::{Service, TestDatabase, on_both_databases};
use std::time::Duration;

on_both_databases! {
    async fn readiness_says_why(database: TestDatabase) {
        let service = Service::start(database).await;
        let text = service.get("/readyz?verbose").send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "[+]database ok\n[+]schema ok\n[+]draining ok\nok\n");
        service.draining.cancel();
        let response = service.get("/readyz?verbose").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()["connection"].to_str().unwrap()), (503, "close"));
        assert!(response.text().await.unwrap().contains("[-]draining failed"));
        assert_eq!(service.json(service.post("/api/tasks").json(&serde_json::json!({ "payload": {} }))).await.0, 202, "everything is still served");
    }

    async fn made_up_paths_methods_and_names_add_no_series(database: TestDatabase) {
        let service = Service::start(database).await;
        service.json(service.merge("1")).await;
        service.get("/nothing").send().await.unwrap();
        let before = service.metrics.render().lines().count();
        for n in 0..300 {
            let method = reqwest::Method::from_bytes(format!("FOO{n}").as_bytes()).unwrap();
            service.request(method, "/task").header("user-agent", format!("agent-{n}")).send().await.unwrap();
            service.get(&format!("/made/up/{n}")).header("x-caller", format!("caller-{n}")).send().await.unwrap();
            service.merge(&format!("%00{n}")).header("x-caller", format!("caller-{n}")).send().await.unwrap();
        }
        assert_eq!(service.metrics.render().lines().count(), before);
        let text = service.get("/metrics").send().await.unwrap().text().await.unwrap();
        assert!(text.contains("protocol_bridge_http_request_seconds_count{route=\"/task/{taskId}/status\",method=\"GET\",status=\"5xx\"} 0"), "at 0 from the start");
        assert!(text.contains("protocol_bridge_legacy_requests_total{caller=\"other\",outcome=\"gone\"} 0"));
    }

    async fn an_agenda_is_checked_without_a_task(database: TestDatabase) {
        let service = Service::start(database).await;
        let (status, good) = service.json(service.get("/api/agendas/9/check")).await;
        assert_eq!((status, &good["ready"], &good["errors"]), (200, &true.into(), &serde_json::json!([])), "{good}");
        let (status, wrong) = service.json(service.get("/api/agendas/wrong-9/check")).await;
        assert_eq!((status, &wrong["ready"]), (200, &false.into()), "{wrong}");
        assert!(wrong["errors"][0]["pointer"].as_str().unwrap().starts_with("/questions/0"), "{wrong}");
        assert_eq!(service.json(service.get("/api/agendas/unknown-9/check")).await.0, 404);
        let (status, none) = service.json(service.get("/api/agendas")).await;
        assert_eq!((status, &none["items"], &none["nextCursor"]), (200, &serde_json::json!([]), &serde_json::Value::Null), "an HTTP source cannot list");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task").await, 0);
    }

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
