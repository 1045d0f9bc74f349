//! The whole service, and an agenda service beside it that does what a test says.

use super::{TestDatabase, server};
use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;
use protocol_bridge::{
    app::App,
    base::{
        clock::Clock,
        config::{Config, Sources, load},
        metrics,
        shutdown::Shutdown,
    },
    callers::Ledger,
    engine::Engine,
    http,
    store::Db,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// The service; stops with the test.
pub struct Service {
    pub address: SocketAddr,
    pub database: TestDatabase,
    pub db: Db,
    pub engine: Engine,
    pub ledger: Ledger,
    pub agendas: AgendaService,
    pub metrics: PrometheusHandle,
    pub draining: CancellationToken,
    pub shutdown: Shutdown,
    client: reqwest::Client,
}

impl Service {
    pub async fn start(database: TestDatabase) -> Self {
        Self::configured(database, &[]).await
    }

    /// With settings over the defaults, such as `("LEGACY__TIMEOUT", "1s")`.
    pub async fn configured(database: TestDatabase, settings: &[(&str, &str)]) -> Self {
        Self::with(database, settings, |_| {}).await
    }

    pub async fn with(database: TestDatabase, settings: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        Self::beside(AgendaService::start().await, database, settings, change).await
    }

    /// One more replica on the same database, with a document store of its own beside it.
    pub async fn replica(&self, settings: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        let data_dir = tempfile::tempdir().expect("a folder");
        let database = TestDatabase { url: self.database.url.clone(), dialect: self.database.dialect, data_dir };
        Self::beside(AgendaService::start().await, database, settings, change).await
    }

    async fn beside(agendas: AgendaService, database: TestDatabase, settings: &[(&str, &str)], change: impl FnOnce(&mut Config)) -> Self {
        let data_dir = database.data_dir.path().join("data").display().to_string();
        let fixed = [
            ("DATA_DIR", data_dir.as_str()),
            ("DATABASE__URL", &database.url),
            ("DATABASE__MAX_CONNECTIONS", "8"),
            ("HTTP__LISTEN", "127.0.0.1:0"),
            ("AGENDA__SOURCE", &agendas.source),
            ("AGENDA__READY_GRACE", "0s"),
            ("ENGINE__DEMO", "true"),
        ];
        let environment =
            fixed.iter().chain(settings).map(|(key, value)| (format!("PROTOCOL_BRIDGE__{key}"), (*value).to_owned())).collect();
        let mut config = load(&Sources { environment, ..Sources::default() }).expect("a test's settings are valid").config;
        change(&mut config);
        let app = App::start(config).await.expect("the service starts");
        Self {
            address: app.address(),
            db: app.db().clone(),
            engine: app.engine().clone(),
            ledger: app.ledger().clone(),
            metrics: metrics::install().expect("the recorder that the service installed"),
            draining: app.draining().clone(),
            shutdown: app.shutdown().clone(),
            client: server::client(),
            database,
            agendas,
        }
    }

    /// For requests that take another way than straight to the service.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    /// The v1 call.
    pub fn merge(&self, agenda: &str) -> RequestBuilder {
        self.post(&format!("/api/v1/protocol/merge/byAgenda/{agenda}"))
    }

    /// An agenda's protocol by the task API.
    pub async fn protocol_of(&self, agenda: &str) -> Value {
        let (status, task) = self.json(self.post("/task").json(&json!({ "agendaId": agenda }))).await;
        assert_eq!(status, 202, "{task}");
        let done = self.finished(task["taskId"].as_str().expect("an id")).await;
        assert_eq!(done["status"], "COMPLETED", "{done}");
        self.json(self.get(&format!("/protocol/{}", done["protocolId"].as_str().expect("an id")))).await.1
    }

    /// Stops the service as a drain does, so that another can have the database.
    pub async fn stop(self) -> TestDatabase {
        self.shutdown.force();
        self.shutdown.finished().await;
        self.ledger.flush().await;
        self.db.close().await;
        let mut service = self;
        let data_dir = tempfile::tempdir().expect("a folder");
        let nothing = TestDatabase { url: String::new(), dialect: service.database.dialect, data_dir };
        std::mem::replace(&mut service.database, nothing)
    }

    /// Status and JSON body of an answer that must come.
    pub async fn json(&self, request: RequestBuilder) -> (u16, Value) {
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{status} {text:?} is not JSON: {error}"));
        (status, body)
    }

    pub async fn status_of(&self, task: &str) -> Value {
        let (status, body) = self.json(self.get(&format!("/task/{task}/status"))).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Waits for a task to end.
    pub async fn finished(&self, task: &str) -> Value {
        super::eventually(std::time::Duration::from_secs(30), &format!("task {task} has ended"), || async {
            let status = self.status_of(task).await;
            ["COMPLETED", "FAILED", "CANCELLED"].contains(&status["status"].as_str().expect("a status"))
        })
        .await;
        self.status_of(task).await
    }

    /// A metric's value; the series has to be there.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics.render();
        let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        let line = line.unwrap_or_else(|| panic!("there is no series {series}"));
        line.rsplit(' ').next().expect("a value").parse().expect("a number")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

/// An agenda service. `unknown…` is not there, `unsigned…` has a question that is not signed until [`AgendaService::sign`], `wrong…` contradicts itself,
/// `slow…` waits for [`AgendaService::release`] (`slow-unsigned…` then is not signed either); every other id is a small agenda without a fault.
pub struct AgendaService {
    pub source: String,
    asked: Arc<AtomicUsize>,
    gate: watch::Sender<bool>,
    title: watch::Sender<String>,
    signed: watch::Sender<bool>,
    shutdown: Shutdown,
}

#[derive(Clone)]
struct Shared {
    asked: Arc<AtomicUsize>,
    gate: watch::Receiver<bool>,
    title: watch::Receiver<String>,
    signed: watch::Receiver<bool>,
}

impl AgendaService {
    async fn start() -> Self {
        let (gate, signed, title) =
            (watch::Sender::new(false), watch::Sender::new(false), watch::Sender::new("Заседание Совета".to_owned()));
        let shared = Shared { asked: Arc::default(), gate: gate.subscribe(), title: title.subscribe(), signed: signed.subscribe() };
        let asked = Arc::clone(&shared.asked);
        let router = Router::new().route("/agendas/{id}", axum::routing::get(serve)).with_state(shared);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let source = format!("http://{}/agendas/{{agendaId}}", listener.local_addr().expect("an address"));
        let shutdown = Shutdown::new();
        shutdown.spawn("agendas", http::server::serve(listener, router, Clock::system(), shutdown.clone()));
        Self { source, asked, gate, title, signed, shutdown }
    }

    /// Lets the slow agendas through.
    pub fn release(&self) {
        self.gate.send_replace(true);
    }

    /// Signs what is not signed.
    pub fn sign(&self) {
        self.signed.send_replace(true);
    }

    /// Corrects the title of every agenda.
    pub fn retitle(&self, title: &str) {
        self.title.send_replace(title.to_owned());
    }

    /// How often an agenda was asked for.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for AgendaService {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

async fn serve(State(mut shared): State<Shared>, Path(id): Path<String>) -> Response {
    shared.asked.fetch_add(1, Ordering::SeqCst);
    if id.starts_with("unknown") {
        return StatusCode::NOT_FOUND.into_response();
    }
    if id.starts_with("slow") {
        shared.gate.wait_for(|open| *open).await.expect("the test holds the gate");
    }
    let title = shared.title.borrow().clone();
    let signed = *shared.signed.borrow();
    axum::Json(agenda(&id, &title, signed)).into_response()
}

fn agenda(id: &str, title: &str, signed: bool) -> Value {
    let signed = if id.contains("unsigned") && !signed { "DRAFT" } else { "REPORT_SIGNED" };
    let votes = if id.starts_with("wrong") { 9 } else { 3 };
    json!({
        "agendaId": id,
        "title": title,
        "body": { "organization": "Город Приозёрск", "name": "Совета депутатов" },
        "language": "ru",
        "place": "г. Приозёрск",
        "timeZone": "Europe/Moscow",
        "start": "2026-11-30T10:00:00+03:00",
        "end": "2026-11-30T12:00:00+03:00",
        "chair": "m1",
        "secretary": "g1",
        "members": (1..=3).map(|n| json!({ "id": format!("m{n}"), "name": format!("Член {n}"), "attendance": "present" })).collect::<Vec<_>>(),
        "invited": [{ "id": "g1", "name": "Секретарь А. Б." }],
        "rules": { "quorum": "moreThanHalf", "majority": "simple" },
        "questions": [{
            "id": "q1", "order": 1, "title": "О бюджете", "status": signed, "start": "2026-11-30T10:10:00+03:00", "rapporteur": "g1",
            "heard": ["Доклад."],
            "decision": [{ "number": "1.1", "text": "Утвердить бюджет." }],
            "vote": { "ballot": "open", "for": votes, "against": 0 }
        }]
    })
}
