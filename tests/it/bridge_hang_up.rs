//! Clients that hang up, and connections that break: the work goes on, nothing is half made, nothing is kept waiting (H-02, H-03).

use crate::support::{Service, TestDatabase, eventually, on_both_databases};
use protocol_bridge::base::entropy::Entropy;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Sends a request head and body, then resets the connection.
async fn send_and_reset(service: &Service, request: &str, after: Duration) {
    let mut stream = TcpStream::connect(service.address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = [0; 512];
    let _ = tokio::time::timeout(after, stream.read(&mut answer)).await;
    // Without waiting for unsent data: the peer sees a reset, as behind a balancer that cuts.
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("an option of TCP");
}

const V1: &str = "POST /api/v1/protocol/merge/byAgenda/AGENDA HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";

on_both_databases! {
    async fn a_reset_before_the_answer_and_a_repeat_are_one_task(database: TestDatabase) {
        let service = Service::start(database).await;
        for _ in 0..3 {
            send_and_reset(&service, &V1.replace("AGENDA", "slow-h2"), Duration::from_millis(100)).await;
        }
        service.agendas.release();
        let (status, protocol) = service.json(service.merge("slow-h2")).await;
        assert_eq!((status, &protocol["version"]), (200, &1.into()));
        let body = r#"{"agendaId":"h2-v2"}"#;
        let keyed = format!(
            "POST /task HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: h2\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        for _ in 0..3 {
            send_and_reset(&service, &keyed, Duration::ZERO).await;
        }
        let repeat = service.post("/task").header("idempotency-key", "h2").header("content-type", "application/json").body(body);
        let (status, task) = service.json(repeat).await;
        assert_eq!(status, 202, "{task}");
        service.finished(task["taskId"].as_str().unwrap()).await;
        assert_eq!(service.database.number("SELECT COUNT(*) FROM task WHERE agenda_id = 'h2-v2'").await, 1);
        assert!(service.database.number("SELECT COUNT(*) FROM protocol WHERE agenda_id = 'slow-h2'").await == 1);
    }

    async fn clients_that_hang_up_leave_nothing_half_made_and_nobody_waiting(database: TestDatabase) {
        let service = Service::start(database).await;
        let chance = Entropy::seeded(7);
        let calls = (0..500).map(|n| {
            let after = Duration::from_secs_f64(chance.fraction() * 0.2);
            let request = if n % 2 == 0 {
                V1.replace("AGENDA", &format!("slow-h3-{}", n % 17))
            } else {
                let body = format!(r#"{{"agendaId":"slow-h3-{n}"}}"#);
                format!("POST /task HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            };
            let service = &service;
            async move { send_and_reset(service, &request, after).await }
        });
        futures::future::join_all(calls).await;
        eventually(Duration::from_secs(10), "no waiter is left", || async {
            service.metric("protocol_bridge_legacy_waiters") < 0.5 && service.engine.hub().waiters() == 0
        }).await;
        // Every task has or had its message: it was handed over, or it waits to be.
        let half = "SELECT COUNT(*) FROM task t WHERE NOT EXISTS (SELECT 1 FROM outbox o WHERE o.task_id = t.id)";
        assert_eq!(service.database.number(half).await, 0);
        service.agendas.release();
        let unfinished = "SELECT COUNT(*) FROM task WHERE status <> 'COMPLETED'";
        eventually(Duration::from_mins(1), "every accepted task completes", || async { service.database.number(unfinished).await == 0 }).await;
        assert!(service.database.number("SELECT COUNT(*) FROM task").await > 0);
        eventually(Duration::from_secs(10), "no connection of the database is held", || async { service.db.in_use() == 0 }).await;
    }
}
