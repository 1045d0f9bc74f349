//! Metric names are an interface: dashboards and alerts are written against them.

use protocol_bridge::base::metrics::{Description, Replicas, descriptions, install};
use std::{fmt::Write as _, fs};

#[test]
fn names_labels_and_kinds_are_what_they_were() {
    let lines: Vec<String> =
        descriptions().iter().map(|Description { name, kind, labels, .. }| format!("{name}{{{}}} {kind}", labels.join(","))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// `UPDATE_DOCS=1` writes the table anew.
#[test]
fn the_documentation_lists_exactly_the_metrics_there_are() {
    const BEGIN: &str = "<!-- metrics: written by tests/it/metrics_reference.rs, UPDATE_DOCS=1 -->\n";
    const END: &str = "<!-- end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/README.md");
    let text = fs::read_to_string(path).expect("dashboards/README.md");
    let (before, rest) = text.split_once(BEGIN).expect("the table's beginning is marked");
    let (listed, after) = rest.split_once(END).expect("the table's end is marked");
    let mut table = "\n| name | kind | labels | replicas | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for Description { name, kind, labels, replicas, help } in descriptions() {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let replicas = match replicas {
            Replicas::Sum => "sum",
            Replicas::Each => "each",
            Replicas::Shared(take) => take,
        };
        writeln!(table, "| `{name}` | {kind} | {} | {replicas} | {help} |", labels.join(", ")).expect("a string takes everything");
    }
    table.push('\n');
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).expect("written");
    } else {
        assert_eq!(listed, table, "run this test with UPDATE_DOCS=1");
    }
}

/// M-04: histograms tell apart what has to be told apart, and hold what takes minutes.
#[test]
fn histograms_reach_from_a_millisecond_to_the_longest_call() {
    let text = install().expect("the recorder").render();
    let edges = |series: &str| -> Vec<f64> {
        let begin = format!("protocol_bridge_{series}");
        let lines = text.lines().filter(|line| line.starts_with(&begin));
        lines.filter_map(|line| line.split("le=\"").nth(1)?.split('"').next()?.parse().ok()).filter(|edge: &f64| edge.is_finite()).collect()
    };
    for minutes in [
        "legacy_wait_seconds_bucket{outcome=\"completed\"",
        "task_pickup_seconds_bucket{",
        "task_run_seconds_bucket{kind=\"protocol\",outcome=\"completed\"",
        "generator_phase_seconds_bucket{phase=\"MERGE\"",
    ] {
        let edges = edges(minutes);
        for edge in [300.0, 600.0, 720.0, 900.0, 1800.0] {
            assert!(edges.contains(&edge), "{minutes} has no edge at {edge}: {edges:?}");
        }
    }
    let edges = edges("db_transaction_seconds_bucket{name=\"submit_task\"");
    assert!(edges.iter().filter(|edge| (0.001..0.005).contains(*edge)).count() >= 2, "1 ms and 5 ms are the same: {edges:?}");
}

#[test]
fn every_series_with_closed_labels_exists_at_zero_from_the_start() {
    let text = install().expect("the recorder").render();
    for series in [
        "protocol_bridge_inbox_duplicates_total 0",
        "protocol_bridge_tasks_finished_total{kind=\"protocol\",outcome=\"failed\"} 0",
        "protocol_bridge_legacy_waiters 0",
        // From the database, which nobody has read yet.
        "protocol_bridge_dead_letters{reason=\"worker-lost\"} NaN",
        "protocol_bridge_legacy_removable NaN",
        "protocol_bridge_task_pickup_seconds_count 0",
        "protocol_bridge_legacy_wait_seconds_bucket{outcome=\"completed\",le=\"720\"} 0",
    ] {
        assert!(text.lines().any(|line| line == series), "{series} is not in\n{text}");
    }
    // Callers, routes and the build are known to whoever registers them when the service starts.
    let later = [
        "legacy_requests_total",
        "legacy_last_request_timestamp_seconds",
        "legacy_calls_today",
        "legacy_answers_today",
        "legacy_caller_state",
        "http_request_seconds",
        "build_info",
    ];
    for metric in descriptions().iter().filter(|metric| !later.iter().any(|name| metric.name.ends_with(name))) {
        assert!(text.contains(&format!("# HELP {} ", metric.name)), "{} has no help text", metric.name);
    }
}
