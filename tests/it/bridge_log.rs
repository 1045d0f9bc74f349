//! What the log says of a v1 call: one line whose text is a contract, with the task, the agenda and the trace as fields.

use crate::support::{Service, TestDatabase, on_both_databases};
use protocol_bridge::base::telemetry;
use serde_json::Value;
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tracing_subscriber::fmt::MakeWriter;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// Everything logged so far, line by line.
    fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Kept {
    type Writer = Self;

    fn make_writer(&'w self) -> Self::Writer {
        self.clone()
    }
}

on_both_databases! {
    async fn each_call_is_told_once_with_its_task_and_trace(database: TestDatabase) {
        let kept = Kept::default();
        // This test's process has no other subscriber; where tests share one, the guard's thread is this test's only.
        let subscriber = telemetry::json_lines(kept.clone());
        tracing::subscriber::set_global_default(subscriber).expect("one test a process, as nextest runs them");
        let service = Service::start(database).await;
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let response = service.merge("1").header("x-caller", "agenda-state-machine").header("traceparent", parent).send().await.unwrap();
        let task = response.headers()["task-id"].to_str().unwrap().to_owned();
        let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        drop(response.bytes().await);
        service.merge("%20").header("x-caller", "a\u{2028}b".as_bytes()).send().await.unwrap();

        let lines = kept.lines();
        let told: Vec<&Value> = lines.iter().filter(|line| line["message"].as_str().is_some_and(|text| text.starts_with("Sync v1 called by"))).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0]["message"], "Sync v1 called by agenda-state-machine, migrate to task-based");
        assert_eq!((&told[0]["level"], &told[0]["taskId"], &told[0]["agendaId"], &told[0]["traceId"]),
            (&"WARN".into(), &task.as_str().into(), &"1".into(), &"4bf92f3577b34da6a3ce929d0e0e4736".into()));
        assert_eq!((&told[1]["message"], &told[1]["agendaId"], &told[1]["taskId"]), (&"Sync v1 called by ab, migrate to task-based".into(), &"%20".into(), &Value::Null));
        let requests: Vec<&Value> = lines.iter().filter(|line| line["requestId"] == request.as_str() && line.get("route").is_some()).collect();
        assert_eq!(requests.len(), 1, "one line a request: {requests:?}");
        assert_eq!((&requests[0]["route"], &requests[0]["status"], &requests[0]["caller"]),
            (&"/api/v1/protocol/merge/byAgenda/{agendaId}".into(), &200.into(), &"agenda-state-machine".into()));
    }
}
