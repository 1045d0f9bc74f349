//! From accepted to running, when there is nothing else to do.

use crate::{
    report::{Report, spread},
    stand::{self, Noop, Stand},
    support::TestDatabase,
};
use protocol_bridge::{domain::ids::TaskId, store::Db};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

const TASKS: usize = 300;
/// Between two tasks, so that the engine is idle each time.
const PAUSE: Duration = Duration::from_millis(20);

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        let db = stand::open(&database).await;
        let mut took = measure(&database, &db, TASKS).await;
        report.add("submitted → executor entered, idle", stand::name(&database), spread(&mut took), "p50 ≤ 5 ms");
        db.close().await;
    }
}

/// How long each of `count` tasks took from the answer of the submission to the executor.
pub async fn measure(database: &TestDatabase, db: &Db, count: usize) -> Vec<Duration> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let executor = Noop::new(move |run| {
        let _ = tell.send((run.task().id, Instant::now()));
    });
    let (engine, shutdown) = stand::engine(database, db, executor);
    let accepted: Arc<Mutex<HashMap<TaskId, Instant>>> = Arc::default();
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        tokio::time::sleep(PAUSE).await;
        let task = engine.submit(stand::noop(), None).await.expect("accepted").task;
        accepted.lock().expect("nobody panics").insert(task.id, Instant::now());
        let (id, entered) = told.recv().await.expect("the executor lives");
        let at = accepted.lock().expect("nobody panics").remove(&id).expect("one at a time");
        took.push(entered.saturating_duration_since(at));
    }
    shutdown.force();
    shutdown.finished().await;
    took
}
