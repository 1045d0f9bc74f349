//! The budgets, measured over the real engine, store and program on both databases: `scripts/bench.sh [name]…`.
//!
//! Not a test: nothing fails, a table is printed. Whoever publishes figures runs it on a quiet machine.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the machine's clock, and looks into the databases with SQL of its own")]
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

mod answer; // goes with v1
mod crash;
mod gauges;
mod million;
mod pickup;
mod post;
mod report;
mod reports;
mod slow_host;
mod stand;
mod start;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests' kit: a bench needs some of its tools")]
mod support;
mod throughput;

use report::Report;
use stand::Stand;

const NAMES: &[&str] = &[
    "throughput",
    "pickup",
    "post",
    "answer", // goes with v1
    "million",
    "gauges",
    "slow-host",
    "reports",
    "start",
    "crash",
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        println!("there is no bench {unknown:?}; there are {}", NAMES.join(", "));
        std::process::exit(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run(&wanted));
}

async fn run(wanted: &[String]) {
    let stand = Stand::start();
    let mut report = Report::new(wanted);
    for &name in NAMES {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == name) {
            continue;
        }
        println!("… {name}");
        match name {
            "throughput" => throughput::run(&stand, &mut report).await,
            "pickup" => pickup::run(&stand, &mut report).await,
            "post" => post::run(&stand, &mut report).await,
            "answer" => answer::run(&stand, &mut report).await, // goes with v1
            "million" => million::run(&stand, &mut report).await,
            "gauges" => gauges::run(&stand, &mut report).await,
            "slow-host" => slow_host::run(&stand, &mut report).await,
            "reports" => reports::run(&stand, &mut report).await,
            "start" => start::run(&stand, &mut report).await,
            _ => crash::run(&stand, &mut report).await,
        }
    }
    report.print();
}
