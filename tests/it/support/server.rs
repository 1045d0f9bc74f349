//! The service in this process: the real router, engine and generator on a database of the test's own.

use super::TestDatabase;
use protocol_bridge::{
    app::App,
    base::{clock::Clock, config::Config, entropy::Entropy},
};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::time::Duration;

/// A running service; stopped when dropped.
#[derive(Debug)]
pub struct TestServer {
    pub app: App,
    /// Such as `http://127.0.0.1:41234`, without a slash at the end.
    pub url: String,
    pub client: Client,
}

impl TestServer {
    /// The embedded defaults on `database` and a free port, with what `configure` changes. Polls every 50 ms and waits for nothing after a shutdown.
    pub async fn start(database: &TestDatabase, configure: impl FnOnce(&mut Config)) -> Self {
        Self::start_with(database, Clock::system(), Entropy::system(), configure).await
    }

    /// The same with a clock of the test's own.
    pub async fn start_with(database: &TestDatabase, clock: Clock, entropy: Entropy, configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(database);
        configure(&mut config);
        let app = App::start_with(config, clock, entropy).await.expect("the service starts");
        Self { url: format!("http://{}", app.address()), app, client: client() }
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    /// The JSON at `path`, whatever its status.
    pub async fn json(&self, path: &str) -> Value {
        json(self.get(path).send().await.expect("an answer")).await
    }

    /// The value of a metric without its prefix, such as `inbox_duplicates_total` or `tasks{status="PENDING"}`; the recorder is the whole process's.
    pub async fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").send().await.expect("an answer").text().await.expect("a text");
        let prefix = format!("protocol_bridge_{series} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no series {series} in\n{text}"));
        line.parse().expect("a number")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.app.force();
    }
}

/// What tests start from.
pub fn config(database: &TestDatabase) -> Config {
    let mut config = Config { data_dir: database.data_dir.path().join("data"), ..Config::default() };
    config.http.listen = ([127, 0, 0, 1], 0).into();
    config.database.url = database.url.as_str().into();
    config.database.max_connections = 8;
    config.engine.demo = protocol_bridge::base::config::Toggle::On;
    config.legacy.poll_interval = Duration::from_millis(50);
    config.shutdown.announce = Duration::ZERO;
    config
}

/// Follows no redirects and keeps its own patience, so that a test ends with words instead of hanging.
pub fn client() -> Client {
    protocol_bridge::base::tls::install();
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(Duration::from_mins(2)).build().expect("a client")
}

/// The answer's body as JSON.
pub async fn json(response: Response) -> Value {
    let status = response.status();
    let text = response.text().await.expect("a body");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} is no JSON ({error}): {text}"))
}
