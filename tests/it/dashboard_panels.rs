//! The dashboards as files: Grafana lays them out as written, they ask for metrics that there are, and the documentation lists every panel.

use crate::support::dashboards::{Dashboard, Panel, dashboards, folder, labels_in, metrics_in};
use protocol_bridge::base::metrics::{Description, descriptions};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashSet},
    fmt::Write as _,
    fs,
};

/// Labels that Prometheus gives.
const ITS_OWN: [&str; 3] = ["job", "instance", "le"];

#[test]
fn every_panel_has_its_place_its_question_and_its_unit() {
    for Dashboard { file, json, panels } in dashboards() {
        assert!(json["uid"].is_string() && json["id"].is_null(), "{file}: a fixed uid, and no id of somebody's Grafana");
        let ids: HashSet<i64> = panels.iter().map(|panel| number(&panel.json["id"])).collect();
        assert_eq!(ids.len(), panels.len(), "{file}: ids are unique");
        let mut taken = HashSet::new();
        for Panel { title, description, json, .. } in &panels {
            let place = &json["gridPos"];
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| number(&place[key]));
            assert!(x >= 0 && w > 0 && x + w <= 24 && h > 0, "{file}: {title} is not within 24 columns");
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{file}: {title} lies over another panel");
            }
            assert!(description.contains('?'), "{file}: {title} asks no question");
            let defaults = &json["fieldConfig"]["defaults"];
            assert!(defaults["unit"].is_string(), "{file}: {title} has no unit");
            assert_eq!(defaults["noValue"], "no answer: down?", "{file}: {title} says nothing when nobody answers");
        }
    }
}

#[test]
fn the_data_source_is_a_variable_everywhere() {
    for Dashboard { file, json, panels } in dashboards() {
        let variables = json["templating"]["list"].as_array().unwrap();
        assert!(variables.iter().any(|variable| variable["name"] == "datasource" && variable["type"] == "datasource"), "{file}");
        let asked = variables.iter().filter(|variable| variable["type"] == "query").chain(panels.iter().map(|panel| &panel.json));
        let asked = asked.chain(panels.iter().flat_map(|panel| panel.json["targets"].as_array().unwrap()));
        for asked in asked {
            assert_eq!(asked["datasource"]["uid"], "${datasource}", "{file}: {asked:#}");
        }
    }
}

/// M-01, M-03: a number over the shown time would be the last one before a process went down, and a counter is short of its first event.
#[test]
fn numbers_are_whole_as_of_now_and_from_gauges() {
    let gauges: HashSet<String> = descriptions().into_iter().filter(|metric| metric.kind == "gauge").map(|metric| metric.name).collect();
    for panel in dashboards().iter().flat_map(|dashboard| &dashboard.panels).filter(|panel| panel.json["type"] != "timeseries") {
        let (title, defaults) = (&panel.title, &panel.json["fieldConfig"]["defaults"]);
        assert_eq!(defaults["decimals"], 0, "{title}");
        let matches: Vec<&Value> = defaults["mappings"].as_array().unwrap().iter().map(|mapping| &mapping["options"]["match"]).collect();
        assert!(matches.iter().any(|kind| *kind == "nan"), "{title}: NaN is to read as unknown");
        assert!(!matches.iter().any(|kind| *kind == "null"), "{title}: Grafana prefers the text for null to the one for no answer");
        if panel.json["type"] == "stat" {
            assert_eq!(panel.json["options"]["reduceOptions"]["calcs"][0], "last", "{title}: lastNotNull passes over NaN");
            let steps = &defaults["thresholds"]["steps"];
            assert_eq!(
                (&steps[0]["color"], steps[1]["value"].as_i64()),
                (&"purple".into(), Some(0)),
                "{title}: no answer is not to look calm"
            );
        }
        for target in &panel.targets {
            assert!(target.instant, "{title} is asked for over a time");
            for metric in metrics_in(&target.expr) {
                assert!(gauges.contains(metric), "{title}: {metric} is no gauge");
            }
            assert!(!target.expr.contains("vector("), "{title}: a made-up value hides that nobody answers");
        }
    }
}

#[test]
fn every_metric_and_label_asked_for_exists_and_every_metric_is_asked_for() {
    let metrics = descriptions();
    let mut asked = BTreeSet::new();
    for panel in dashboards().into_iter().flat_map(|dashboard| dashboard.panels) {
        for target in &panel.targets {
            let place = format!("{}: {}", panel.dashboard, panel.title);
            let mut labels: BTreeSet<&str> = ITS_OWN.into();
            for name in metrics_in(&target.expr) {
                let metric = exported(&metrics, name).unwrap_or_else(|| panic!("{place}: there is no metric {name}"));
                labels.extend(&metric.labels);
                asked.insert(metric.name.clone());
            }
            for label in labels_in(&target.legend).into_iter().chain(selected(&target.expr)).chain(grouped(&target.expr)) {
                assert!(labels.contains(label), "{place}: none of its metrics has a label {label}");
            }
            assert!(target.expr.matches("job=~\"$job\"").count() == metrics_in(&target.expr).len(), "{place} looks into other jobs");
        }
    }
    let rules = fs::read_to_string(folder().join("rules.yml")).unwrap();
    for line in rules.lines().filter(|line| !line.trim().starts_with('#')) {
        for name in metrics_in(line) {
            asked.insert(exported(&metrics, name).unwrap_or_else(|| panic!("rules.yml: there is no metric {name}")).name.clone());
        }
    }
    let forgotten: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).filter(|name| !asked.contains(*name)).collect();
    assert_eq!(forgotten, Vec::<&str>::new(), "no dashboard and no rule looks at these");
}

/// `UPDATE_DOCS=1` writes the tables anew.
#[test]
fn the_documentation_lists_exactly_the_panels_there_are() {
    let mut text = String::new();
    for Dashboard { file, json, panels } in dashboards() {
        writeln!(text, "\n### {} (`grafana/{file}`)\n\n{}\n", json["title"].as_str().unwrap(), json["description"].as_str().unwrap())
            .unwrap();
        text.push_str("| panel | question | query |\n| --- | --- | --- |\n");
        for Panel { title, description, targets, .. } in panels {
            let queries: Vec<String> = targets.iter().map(|target| format!("`{}`", target.expr.replace('|', "\\|"))).collect();
            writeln!(text, "| {title} | {description} | {} |", queries.join("<br>")).unwrap();
        }
    }
    text.push('\n');
    documented("<!-- panels: written by tests/it/dashboard_panels.rs, UPDATE_DOCS=1 -->\n", "<!-- end of panels -->", &text);
}

/// Compares what stands between two marks of dashboards/README.md, or writes it.
pub fn documented(begin: &str, end: &str, wanted: &str) {
    let path = folder().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the beginning is marked");
    let (listed, after) = rest.split_once(end).expect("the end is marked");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
    } else {
        assert_eq!(listed, wanted, "run this test with UPDATE_DOCS=1");
    }
}

fn number(json: &Value) -> i64 {
    json.as_i64().unwrap_or_else(|| panic!("{json} is no whole number"))
}

/// The metric behind a name in an expression.
fn exported<'m>(metrics: &'m [Description], name: &str) -> Option<&'m Description> {
    metrics.iter().find(|metric| {
        let parts: &[&str] = if metric.kind == "histogram" { &["_bucket", "_count", "_sum"] } else { &[""] };
        parts.iter().any(|part| name.strip_suffix(part) == Some(&metric.name))
    })
}

/// The labels in selectors: `route` in `{job=~"$job",route!~"/a|/b"}`.
fn selected(expr: &str) -> Vec<&str> {
    let in_braces = expr.split('{').skip(1).map(|rest| rest.split_once('}').map_or(rest, |(inside, _)| inside));
    let labels = in_braces.flat_map(|inside| inside.split("\",").map(|matcher| matcher.split(['=', '!']).next().unwrap_or_default()));
    labels.collect()
}

/// The labels in `by (…)`.
fn grouped(expr: &str) -> Vec<&str> {
    let lists = expr.split("by (").skip(1).map(|rest| rest.split_once(')').expect("it is closed").0);
    lists.flat_map(|list| list.split(',').map(str::trim)).collect()
}
