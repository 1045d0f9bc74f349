//! The rules as files: what promtool says of them, and that each alert is tried both ways, documented, and tells what to do.

use crate::{
    dashboard_panels::documented,
    support::{
        dashboards::{alerts, folder},
        prometheus::promtool,
    },
};
use std::{fmt::Write as _, fs};

#[test]
fn promtool_accepts_the_rules_and_the_example_configuration() {
    let copy = tempfile::TempDir::new().unwrap();
    for file in ["rules.yml", "prometheus.yml"] {
        fs::copy(folder().join(file), copy.path().join(file)).unwrap();
    }
    // The example names a file that holds the key.
    fs::write(copy.path().join("protocol-bridge.key"), "key").unwrap();
    let checked = promtool(&["check", "config", copy.path().join("prometheus.yml").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.contains("rules found"), "{said}");
}

#[test]
fn every_alert_fires_where_it_should_and_not_where_it_should_not() {
    let file = folder().join("rules_test.yml");
    let tried = promtool(&["test", "rules", file.to_str().unwrap()]);
    assert!(tried.status.success(), "{}{}", String::from_utf8_lossy(&tried.stdout), String::from_utf8_lossy(&tried.stderr));
    let cases = fs::read_to_string(file).unwrap();
    for alert in alerts() {
        let expected: Vec<&str> = cases
            .split(&format!("alertname: {}\n", alert.name))
            .skip(1)
            .map(|rest| rest.lines().next().unwrap_or_default().trim())
            .collect();
        assert!(expected.contains(&"exp_alerts:"), "{} fires in no case", alert.name);
        assert!(expected.contains(&"exp_alerts: []"), "{} is silent in no case", alert.name);
    }
}

#[test]
fn the_runbook_says_of_each_alert_what_it_means_where_to_look_and_what_to_do() {
    let runbook = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runbook.md")).unwrap();
    let sections: Vec<(&str, &str)> = runbook.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap()).collect();
    let names: Vec<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert_eq!(sections.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names, "one section for each alert, in the rules' order");
    for (name, section) in sections {
        for part in ["**Means** ", "**Look** ", "**Do** "] {
            assert!(section.contains(&format!("\n{part}")), "{name} has no {part}");
        }
    }
    for alert in alerts() {
        assert_eq!(alert.runbook_url, format!("docs/runbook.md#{}", alert.name.to_lowercase()));
    }
}

/// `UPDATE_DOCS=1` writes the table anew.
#[test]
fn the_documentation_lists_exactly_the_alerts_there_are() {
    let mut table = "\n| alert | says |\n| --- | --- |\n".to_owned();
    for alert in alerts() {
        writeln!(table, "| [{}](../{}) | {} |", alert.name, alert.runbook_url, alert.summary).unwrap();
    }
    table.push('\n');
    documented("<!-- alerts: written by tests/it/dashboard_rules.rs, UPDATE_DOCS=1 -->\n", "<!-- end of alerts -->", &table);
}
