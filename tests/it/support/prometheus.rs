//! A real Prometheus that scrapes one process twice a second and evaluates the rules that are handed out.

use super::{
    dashboards::{self, Target, substituted},
    server::client,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A running server; ends with the test.
pub struct Prometheus {
    url: String,
    client: reqwest::Client,
    server: Child,
    folder: TempDir,
}

/// Labels and value of one series.
pub type Sample = (BTreeMap<String, String>, f64);
/// Labels and values of one series over a time.
pub type Series = (BTreeMap<String, String>, Vec<f64>);

impl Prometheus {
    /// Scrapes `target`, such as `127.0.0.1:8080`, with `key`, as job `protocol-bridge`.
    pub async fn start(target: &str, key: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let rules = dashboards::folder().join("rules.yml");
        let configuration = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{ job_name: protocol-bridge, authorization: {{ credentials: {key} }}, static_configs: [{{ targets: ['{target}'] }}] }}]\n",
            rules.display()
        );
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, configuration).expect("a configuration");
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let server = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus is installed (scripts/test.sh --install)");
        let prometheus = Self { url: format!("http://{address}"), client: client(), server, folder };
        super::eventually(Duration::from_secs(30), "prometheus is ready", async || prometheus.is_ready().await).await;
        prometheus
    }

    async fn is_ready(&self) -> bool {
        let answer = self.client.get(format!("{}/-/ready", self.url)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, String> {
        let form: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let answer = self.client.get(format!("{}/api/v1/{path}?{}", self.url, form.join("&"))).send().await.expect("prometheus answers");
        let answer = super::server::json(answer).await;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer["error"].to_string()) }
    }

    /// What `expr` is now.
    pub async fn query(&self, expr: &str) -> Result<Vec<Sample>, String> {
        let data = self.ask("query", &[("query", expr)]).await?;
        let series = data["result"].as_array().expect("a vector").iter();
        Ok(series.map(|series| (labels(series), number(&series["value"]))).collect())
    }

    /// The only value that `expr` has now; `None`: it has none.
    pub async fn value(&self, expr: &str) -> Option<f64> {
        let samples = self.query(expr).await.unwrap_or_else(|error| panic!("{expr}: {error}"));
        assert!(samples.len() < 2, "{expr} has more than one value: {samples:?}");
        samples.first().map(|(_, value)| *value)
    }

    /// What `expr` was from `start` to `end` (Unix time), every `step` seconds: each series with its values.
    pub async fn range(&self, expr: &str, start: i64, end: i64, step: i64) -> Result<Vec<Series>, String> {
        let [start, end, step] = [start, end, step].map(|number| number.to_string());
        let data = self.ask("query_range", &[("query", expr), ("start", &start), ("end", &end), ("step", &step)]).await?;
        let values = |series: &Value| series["values"].as_array().expect("values").iter().map(number).collect();
        Ok(data["result"].as_array().expect("a matrix").iter().map(|series| (labels(series), values(series))).collect())
    }

    /// What a panel's target shows, as Grafana asks for it.
    pub async fn shown(&self, target: &Target) -> Result<Vec<Series>, String> {
        let expr = substituted(&target.expr);
        if target.instant {
            return Ok(self.query(&expr).await?.into_iter().map(|(labels, value)| (labels, vec![value])).collect());
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds are enough")]
        let now = seconds_now() as i64;
        if target.daily {
            let today = now - now.rem_euclid(86_400);
            return self.range(&expr, today - 2 * 86_400, today, 86_400).await;
        }
        self.range(&expr, now - 120, now, 1).await
    }

    /// Every rule as loaded.
    pub async fn rules(&self) -> Vec<Value> {
        let data = self.ask("rules", &[]).await.expect("rules");
        data["groups"].as_array().expect("groups").iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }

    /// The names of the alerts that fire.
    pub async fn firing(&self) -> Vec<String> {
        let data = self.ask("alerts", &[]).await.expect("alerts");
        let firing = data["alerts"].as_array().expect("alerts").iter().filter(|alert| alert["state"] == "firing");
        firing.map(|alert| alert["labels"]["alertname"].as_str().expect("a name").to_owned()).collect()
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Runs promtool to its end.
pub fn promtool(arguments: &[&str]) -> Output {
    Command::new("promtool").args(arguments).output().expect("promtool is installed (scripts/test.sh --install)")
}

/// Unix time.
pub fn seconds_now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

fn labels(series: &Value) -> BTreeMap<String, String> {
    let labels = series["metric"].as_object().expect("labels").iter();
    labels.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
}

/// Of a pair of time and value.
fn number(pair: &Value) -> f64 {
    pair[1].as_str().expect("a number as a text").parse().expect("a number")
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
