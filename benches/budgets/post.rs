//! `POST /task` at 500 a second for a while, over real HTTP against the real program, which does the work meanwhile.

use crate::{
    report::{Report, spread},
    stand::{self, Stand},
    support::Process,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const PER_SECOND: u32 = 500;
const SECONDS: u32 = 20;

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let process = Process::serve(&database, &[stand::QUIET]).await;
        let took: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let mut ticker = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
        let mut requests = tokio::task::JoinSet::new();
        for number in 0..PER_SECOND * SECONDS {
            let due = ticker.tick().await;
            let (client, url, took) = (process.client.clone(), format!("{}/task", process.url), Arc::clone(&took));
            requests.spawn(async move {
                // The samples know no such agenda: each task is claimed, asked for, and ends as a dead letter while others come in.
                let sent = client.post(url).json(&json!({ "agendaId": format!("none-{number}") })).send().await.expect("an answer");
                assert_eq!(sent.status(), 202);
                // From when it was to be sent: a client that falls behind does not hide a slow server.
                took.lock().expect("nobody panics").push(Instant::now().saturating_duration_since(due.into_std()));
            });
        }
        while requests.join_next().await.is_some() {}
        let measured = spread(&mut took.lock().expect("nobody panics"));
        report.add("POST /task at 500/s for 20 s", stand::name(&database), measured, "p99 ≤ 25 ms");
        let started = Instant::now();
        stand::drained(&database).await;
        report.add(
            "… and until the last of them had ended",
            stand::name(&database),
            format!("{:.1} s", started.elapsed().as_secs_f64()),
            "",
        );
    }
}
