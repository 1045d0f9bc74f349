//! From the start of the program to its first green `/readyz`, and what it holds in memory when it has nothing to do.

use crate::{
    report::{Report, milliseconds, percentile},
    stand::{self, Stand},
    support::Process,
};
use std::{
    fs,
    time::{Duration, Instant},
};

const STARTS: usize = 5;
const SETTLED: Duration = Duration::from_secs(3);

pub async fn run(stand: &Stand, report: &mut Report) {
    for database in stand.databases().await {
        // The first start makes the schema.
        drop(Process::serve(&database, &[]).await);
        let mut took = Vec::new();
        for _ in 0..STARTS {
            let started = Instant::now();
            let process = Process::serve(&database, &[]).await;
            took.push(started.elapsed());
            drop(process);
        }
        let on = stand::name(&database);
        report.add("process start → ready, median of 5", on, milliseconds(percentile(&mut took, 0.5)), "≤ 500 ms");
        let process = Process::serve(&database, &[]).await;
        tokio::time::sleep(SETTLED).await;
        report.add("resident memory, idle", on, format!("{:.1} MiB", resident(process.id())), "≤ 80 MiB");
    }
}

/// In MiB.
fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for resident memory");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes / 1024.0
}
