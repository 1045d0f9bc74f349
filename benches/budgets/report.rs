//! What was measured, as a table in Markdown with the machine, the commit and the command beside it.

use protocol_bridge::base::build::COMMIT;
use std::{fmt::Write as _, fs, time::Duration};

#[derive(Debug)]
pub struct Report {
    command: String,
    rows: Vec<[String; 4]>,
}

impl Report {
    pub fn new(wanted: &[String]) -> Self {
        Self { command: format!("scripts/bench.sh {}", wanted.join(" ")).trim().to_owned(), rows: Vec::new() }
    }

    /// One line of the table, shown at once as well: a long run is watched.
    pub fn add(&mut self, what: &str, on: &str, measured: impl Into<String>, budget: &str) {
        let row = [what.to_owned(), on.to_owned(), measured.into(), budget.to_owned()];
        println!("  {}", row.join(" · "));
        self.rows.push(row);
    }

    pub fn print(&self) {
        let mut text = format!(
            "\n{}\ncommit {COMMIT} · `{}`\n\n| what | on | measured | budget |\n| --- | --- | --- | --- |\n",
            machine(),
            self.command
        );
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        println!("{text}");
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split(':').nth(1).unwrap_or_default().trim().to_owned()
    };
    format!("{cores} cores ({}), {} of memory", field("/proc/cpuinfo", "model name"), field("/proc/meminfo", "MemTotal"))
}

/// The value below which `share` of them lie.
pub fn percentile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of a short list")]
    let index = ((values.len() as f64 - 1.0) * share).round() as usize;
    values.get(index).copied().unwrap_or_default()
}

pub fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// p50, p95, p99 and the largest.
pub fn spread(values: &mut [Duration]) -> String {
    let at = |values: &mut [Duration], share| milliseconds(percentile(values, share));
    format!("p50 {}, p95 {}, p99 {}, most {}", at(values, 0.5), at(values, 0.95), at(values, 0.99), at(values, 1.0))
}

pub fn per_second(count: usize, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of thousands")]
    let count = count as f64;
    count / took.as_secs_f64()
}
