//! The dashboards and rules as they are handed out.

use serde_json::Value;
use std::{fs, path::PathBuf};

/// A folder of the repository.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("dashboards")
}

#[derive(Debug)]
pub struct Dashboard {
    pub file: &'static str,
    pub json: Value,
    pub panels: Vec<Panel>,
}

#[derive(Debug, Clone)]
pub struct Panel {
    pub dashboard: String,
    pub title: String,
    /// Its question, and what has to be known to read the answer.
    pub description: String,
    pub json: Value,
    pub targets: Vec<Target>,
}

#[derive(Debug, Clone)]
pub struct Target {
    pub expr: String,
    pub legend: String,
    /// Asked for as of now, not over the time that is shown.
    pub instant: bool,
    /// `1d`: at least one step is a day.
    pub daily: bool,
}

pub fn dashboards() -> Vec<Dashboard> {
    ["migration.json", "tasks.json", "delivery.json"].map(read).into()
}

/// The panel of this title; of several, the first.
pub fn panel(title: &str) -> Panel {
    let mut panels = dashboards().into_iter().flat_map(|dashboard| dashboard.panels).filter(|panel| panel.title == title);
    panels.next().unwrap_or_else(|| panic!("there is no panel {title:?}"))
}

/// Grafana's variables as it would fill them in.
pub fn substituted(expr: &str) -> String {
    let filled = expr.replace("$job", "protocol-bridge").replace("$caller", ".*").replace("$__rate_interval", "60s");
    assert!(!filled.contains('$'), "{expr} has a variable that nobody fills in");
    filled
}

fn read(file: &'static str) -> Dashboard {
    let text = fs::read_to_string(folder().join("grafana").join(file)).expect("the dashboard is there");
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let panels = json["panels"].as_array().expect("panels").iter().map(|panel| read_panel(text_of(&json, "title"), panel)).collect();
    Dashboard { file, json, panels }
}

fn read_panel(dashboard: String, json: &Value) -> Panel {
    let target = |target: &Value| Target {
        expr: text_of(target, "expr"),
        legend: text_of(target, "legendFormat"),
        instant: target["instant"] == true && target["range"] == false,
        daily: json["interval"] == "1d",
    };
    let targets = json["targets"].as_array().expect("targets").iter().map(target).collect();
    Panel { dashboard, title: text_of(json, "title"), description: text_of(json, "description"), json: json.clone(), targets }
}

fn text_of(json: &Value, key: &str) -> String {
    json[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {json:#}")).to_owned()
}

/// An alert of rules.yml, in the order in which they stand there.
#[derive(Debug)]
pub struct Alert {
    pub name: String,
    pub summary: String,
    pub runbook_url: String,
}

/// Whatever is not in the form that rules.yml keeps to is missed, so whoever calls compares the count with Prometheus's own.
pub fn alerts() -> Vec<Alert> {
    let text = fs::read_to_string(folder().join("rules.yml")).expect("the rules are there");
    let of = |rule: &str, key: &str| {
        let line = rule.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap_or_else(|| panic!("no {key} in {rule}"));
        line.trim().to_owned()
    };
    let rules = text.split("- alert: ").skip(1);
    rules.map(|rule| Alert { name: of(rule, ""), summary: of(rule, "summary:"), runbook_url: of(rule, "runbook_url:") }).collect()
}

/// The names of our metrics in an expression, `_bucket`, `_sum` and `_count` left on.
pub fn metrics_in(expr: &str) -> Vec<&str> {
    let words = expr.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_' || sign == ':'));
    words.filter(|word| word.starts_with("protocol_bridge_")).collect()
}

/// The `{{label}}`s of a legend.
pub fn labels_in(legend: &str) -> Vec<&str> {
    legend.split("{{").skip(1).map(|rest| rest.split_once("}}").expect("it is closed").0).collect()
}
