//! A real agenda service on this machine: answers what the test says, counts what it was asked, keeps the headers it saw.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use protocol_bridge::base::{config, shutdown::Shutdown};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

type Requests = Arc<Mutex<Vec<Seen>>>;
type Answer = dyn Fn(&Seen, usize) -> Response + Send + Sync;

/// One request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub host: String,
    pub authorization: Option<String>,
    pub if_none_match: Option<String>,
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

/// The service; ends with the test.
pub struct AgendaServer {
    pub address: SocketAddr,
    seen: Requests,
    shutdown: Shutdown,
}

impl AgendaServer {
    /// `answer` is given the request and how many were asked for the same path before.
    pub async fn start(answer: impl Fn(&Seen, usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let seen: Requests = Arc::default();
        let answer: Arc<Answer> = Arc::new(answer);
        let router = Router::new().fallback(handle).with_state((Arc::clone(&seen), answer));
        let shutdown = Shutdown::new();
        let hard = shutdown.hard().clone();
        shutdown.spawn("agenda-server", async move {
            tokio::select! {
                () = hard.cancelled() => {}
                served = axum::serve(listener, router).into_future() => served.expect("the server runs"),
            }
        });
        Self { address, seen, shutdown }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything that was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.seen().iter().filter(|seen| seen.path == path).count()
    }
}

impl Drop for AgendaServer {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

async fn handle(State((all, answer)): State<(Requests, Arc<Answer>)>, request: Request<Body>) -> Response {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let seen = Seen {
        path: request.uri().to_string(),
        host: header("host").unwrap_or_default(),
        authorization: header("authorization"),
        if_none_match: header("if-none-match"),
        traceparent: header("traceparent"),
        tracestate: header("tracestate"),
    };
    let before = {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.iter().filter(|other| other.path == seen.path).count();
        all.push(seen.clone());
        before
    };
    answer(&seen, before)
}

/// A body that sends `head` and then nothing more, for as long as it is read.
pub fn stalling(head: &'static str) -> Body {
    use futures::StreamExt as _;
    let head = futures::stream::iter([Ok::<_, std::io::Error>(head)]);
    Body::from_stream(head.chain(futures::stream::pending()))
}

/// A body that comes when the gate opens.
pub fn gated(mut gate: tokio::sync::watch::Receiver<bool>, text: String) -> Response {
    let body = async move {
        // A gate that is gone is open.
        let _ = gate.wait_for(|open| *open).await;
        Ok::<_, std::io::Error>(text)
    };
    answer(200, Body::from_stream(futures::stream::once(body)))
}

/// An answer with this status and body.
pub fn answer(status: u16, body: impl Into<Body>) -> Response {
    Response::builder().status(status).body(body.into()).expect("a plain answer")
}

/// What a configuration says about agendas, asked from `source`.
pub fn config(source: &str) -> config::AgendaConfig {
    let mut agenda = super::config().agenda;
    source.clone_into(&mut agenda.source);
    agenda
}
