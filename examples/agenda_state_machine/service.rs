//! The bridge as its callers see it: the HTTP calls of v1 and of the task API.

use reqwest::{Client, Method, RequestBuilder, Response, redirect::Policy};
use serde_json::{Value, json};
use std::time::Duration;

/// How long calls may take that only look something up or submit.
const QUICK: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Service {
    client: Client,
    base: String,
    key: Option<String>,
}

/// What came back: from the service, or from a proxy before it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// `Task-Id`, or the body's first field.
    pub task_id: Option<String>,
    /// `task`: the work itself failed; `bridge`: the service could not wait or accept; none: somebody else answered.
    pub error_source: Option<String>,
    pub body: Value,
}

impl Service {
    pub fn new(base: &str, key: Option<String>) -> reqwest::Result<Self> {
        protocol_bridge::base::tls::install();
        // The product in the User-Agent is the name under which v1's callers are counted.
        let client = Client::builder().user_agent("agenda-state-machine/1.0").redirect(Policy::limited(3)).no_proxy().build()?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), key })
    }

    /// v1: holds the connection until the protocol is there, at most for `cut`. No body, as the Feign client sends it.
    pub async fn merge(&self, agenda: &str, cut: Duration) -> reqwest::Result<Answer> {
        let path = format!("/api/v1/protocol/merge/byAgenda/{agenda}");
        Answer::read(self.request(Method::POST, &path).timeout(cut).send().await?).await
    }

    /// Submits; the same key is the same task.
    pub async fn submit(&self, agenda: &str, key: &str) -> reqwest::Result<Answer> {
        let body = json!({ "agendaId": agenda, "clientReference": key });
        Answer::read(self.request(Method::POST, "/task").timeout(QUICK).header("Idempotency-Key", key).json(&body).send().await?).await
    }

    /// How a task stands.
    pub async fn status(&self, task: &str) -> reqwest::Result<Answer> {
        self.get(&format!("/task/{task}/status")).await
    }

    /// The protocol of a completed task (a redirect leads there).
    pub async fn result(&self, task: &str) -> reqwest::Result<Answer> {
        self.get(&format!("/task/{task}/result")).await
    }

    /// The agenda's newest task, for who never saw its id because a proxy answered.
    pub async fn newest_task(&self, agenda: &str) -> reqwest::Result<Option<String>> {
        let tasks = self.get(&format!("/task?agendaId={agenda}&limit=1")).await?;
        Ok(tasks.body["items"][0]["taskId"].as_str().map(str::to_owned))
    }

    async fn get(&self, path: &str) -> reqwest::Result<Answer> {
        Answer::read(self.request(Method::GET, path).timeout(QUICK).send().await?).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }
}

impl Answer {
    async fn read(response: Response) -> reqwest::Result<Self> {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (status, error_source, in_header) = (response.status().as_u16(), header("error-source"), header("task-id"));
        // A proxy's page is HTML; it says nothing to us.
        let body: Value = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
        let task_id = in_header.or_else(|| body["taskId"].as_str().map(str::to_owned));
        Ok(Self { status, task_id, error_source, body })
    }

    /// The problem's type and detail, or the bare status of an answer that is none.
    pub fn problem(&self) -> (String, String) {
        let text = |name: &str| self.body[name].as_str().map(str::to_owned);
        (text("type").unwrap_or_else(|| format!("HTTP {}", self.status)), text("detail").unwrap_or_default())
    }
}
