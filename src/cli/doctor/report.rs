//! What the doctor found, for people and for programs.

use super::{
    documents::{Blobs, Looked, NAMED},
    finding::{Finding, Verdict},
};
use crate::cli::output::say;
use serde_json::{Value, json};
use std::fmt::Write as _;

pub(super) struct Report {
    /// In the order in which one thing needs another.
    pub(super) findings: Vec<(&'static str, Finding)>,
    pub(super) documents: Option<Looked>,
}

impl Report {
    pub(super) fn is_healthy(&self) -> bool {
        self.findings.iter().all(|(_, finding)| finding.verdict != Verdict::Failed)
    }

    pub(super) fn print(&self, as_json: bool) {
        if as_json { say(&self.json().to_string()) } else { say(self.table().trim_end()) }
    }

    fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .findings
            .iter()
            .map(|(name, Finding { verdict, found, advice })| json!({ "name": name, "verdict": verdict, "found": found, "advice": advice }))
            .collect();
        json!({ "healthy": self.is_healthy(), "checks": checks, "documents": self.documents })
    }

    fn table(&self) -> String {
        let mut table = String::new();
        for (name, Finding { verdict, found, advice }) in &self.findings {
            let _ = writeln!(table, "{:8} {name:10} {found}", verdict.as_str());
            if let Some(advice) = advice {
                let _ = writeln!(table, "{:20}{advice}", "");
            }
        }
        if let Some(Looked { missing, altered, unreferenced, .. }) = &self.documents {
            for (what, blobs) in [("missing", missing), ("altered", altered), ("unreferenced", unreferenced)] {
                list(&mut table, what, blobs);
            }
        }
        table
    }
}

fn list(table: &mut String, what: &str, blobs: &Blobs) {
    for blob in &blobs.blobs {
        let _ = writeln!(table, "{what} {blob}");
    }
    if blobs.count > NAMED as u64 {
        let _ = writeln!(table, "{what} … and {} more", blobs.count - NAMED as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stands_with_what_to_do() {
        let failed = Finding::failed("no answer", "Start it.");
        let missing = Blobs { count: 1, blobs: vec!["sha256/aa/aa".to_owned()] };
        let documents = Some(Looked { missing, ..Looked::default() });
        let report = Report { findings: vec![("config", Finding::ok("fine")), ("database", failed)], documents };
        assert_eq!(
            report.table(),
            "ok       config     fine\nfailed   database   no answer\n                    Start it.\nmissing sha256/aa/aa\n"
        );
        assert!(!report.is_healthy());
        assert_eq!(report.json()["checks"][1]["advice"], "Start it.");
    }
}
