//! What the engine's tests share: nodes over one database, executors that do as a test says, and looks into what happened.

use crate::support::{TestDatabase, eventually};
use bytesize::ByteSize;
use futures::{FutureExt as _, future::BoxFuture};
use metrics_exporter_prometheus::PrometheusHandle;
use protocol_bridge::{
    base::{
        clock::Clock,
        config::{self, Toggle},
        disk::FreeSpace,
        entropy::Entropy,
        metrics,
        secret_key::SecretKey,
        shutdown::Shutdown,
    },
    domain::{
        audit::Author,
        ids::{RequestId, TaskId},
        task::{Kind, Status, Task},
        time::Timestamp,
    },
    engine::{
        Decision, Demo, Done, Engine, Idempotency, Parts, Run, Submission, TaskExecutor, Telling, Ticks, Via,
        transport::{Local, Transport},
    },
    store::{Db, Dialect},
};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

pub const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here takes, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(30);

pub fn start_of_time() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

pub fn config() -> config::Engine {
    config::Engine {
        transport: "local".into(),
        nats_prefix: "protocol-bridge".to_owned(),
        max_running: 16,
        max_pending: 10_000,
        min_free_space: ByteSize::b(0),
        lease: 30 * SECOND,
        heartbeat: 10 * SECOND,
        attempt_deadline: 600 * SECOND,
        max_attempts: 5,
        retry_base: 2 * SECOND,
        retry_jitter: 0.1,
        retention_tasks: 90 * 24 * 3600 * SECOND,
        retention_messages: 7 * 24 * 3600 * SECOND,
        retention_events: 30 * 24 * 3600 * SECOND,
        retention_legacy_calls: 400 * 24 * 3600 * SECOND,
        demo: Toggle::On,
    }
}

/// Webhooks to this machine, and no stream.
pub fn telling() -> Telling {
    let config = config::Events {
        nats_subject: None,
        subscriptions: Vec::new(),
        allow_private_targets: true,
        timeout: 2 * SECOND,
        schedule: [0, 5, 60, 300].map(Duration::from_secs).to_vec(),
        max_per_receiver: 8,
    };
    Telling::new(config, Some(SecretKey::new("a key for tests")))
}

/// What the next node is made of.
pub struct Setup {
    pub config: config::Engine,
    pub clock: Clock,
    pub entropy: Entropy,
    pub grace: Duration,
    pub poll_interval: Duration,
    pub transport: Arc<dyn Transport>,
    pub executors: HashMap<Kind, Arc<dyn TaskExecutor>>,
    pub own_lease_thread: bool,
    pub disk: Option<FreeSpace>,
    pub telling: Telling,
}

impl Setup {
    /// The machine's clock, the demo executor, and protocol tasks that are done at once.
    pub fn new() -> Self {
        Self {
            config: config(),
            clock: Clock::system(),
            entropy: Entropy::system(),
            grace: SECOND,
            poll_interval: 2 * SECOND,
            transport: Arc::new(Local::new(64)),
            executors: HashMap::from([
                (Kind::Demo, Arc::new(Demo) as Arc<dyn TaskExecutor>),
                (Kind::Protocol, Script::new(|_| async { Decision::Done(Done::default()) })),
            ]),
            own_lease_thread: true,
            disk: None,
            telling: telling(),
        }
    }

    /// A clock that stands still, and seeded ids.
    pub fn still(seed: u64) -> Self {
        Self { clock: Clock::manual(start_of_time()), entropy: Entropy::seeded(seed), own_lease_thread: false, ..Self::new() }
    }

    pub fn with_executor(mut self, kind: Kind, executor: Arc<dyn TaskExecutor>) -> Self {
        self.executors.insert(kind, executor);
        self
    }

    pub fn with_config(mut self, change: impl FnOnce(&mut config::Engine)) -> Self {
        change(&mut self.config);
        self
    }

    pub fn with_transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = transport;
        self
    }

    pub async fn open(&self, database: &TestDatabase) -> Db {
        database.open(self.clock.clone(), self.entropy.clone()).await
    }

    fn parts(self, database: &TestDatabase, db: Db) -> Parts {
        // As the service does it: on PostgreSQL the lease keeper has a connection of its own.
        let lease_store = (self.own_lease_thread && database.dialect == Dialect::Postgres).then(|| protocol_bridge::store::Options {
            max_connections: 2,
            migrate: false,
            ..database.options(self.clock.clone(), self.entropy.clone())
        });
        Parts {
            config: self.config,
            poll_interval: self.poll_interval,
            grace: self.grace,
            db,
            lease_store,
            transport: self.transport,
            clock: self.clock,
            entropy: self.entropy,
            executors: self.executors,
            disk: self.disk,
            telling: self.telling,
        }
    }

    /// A node whose loops run.
    pub fn start(self, database: &TestDatabase, db: &Db) -> Node {
        let shutdown = Shutdown::new();
        let clock = self.clock.clone();
        let engine = Engine::start(self.parts(database, db.clone()), &shutdown);
        Node { engine, clock, shutdown }
    }

    /// A node that does nothing but what its ticks are told.
    pub fn by_hand(self, database: &TestDatabase, db: &Db) -> (Node, Ticks) {
        let shutdown = Shutdown::new();
        let clock = self.clock.clone();
        let (engine, ticks) = Engine::by_hand(self.parts(database, db.clone()), &shutdown);
        (Node { engine, clock, shutdown }, ticks)
    }
}

/// One node.
pub struct Node {
    pub engine: Engine,
    pub clock: Clock,
    pub shutdown: Shutdown,
}

impl Node {
    pub async fn submit(&self, submission: Submission) -> Task {
        self.engine.submit(submission, None).await.expect("accepted").task
    }

    pub async fn task(&self, id: TaskId) -> Task {
        self.engine.task(id).await.expect("readable").expect("there")
    }

    /// Waits until the task stands so.
    pub async fn reaches(&self, id: TaskId, status: Status) -> Task {
        eventually(LIMIT, &format!("task {id} is {status}"), || async { self.task(id).await.status == status }).await;
        self.task(id).await
    }

    pub async fn claimed(&self, id: TaskId, claim_no: u32, status: Status) -> Task {
        let what = format!("task {id} is {status} after claim {claim_no}");
        eventually(LIMIT, &what, || async {
            let task = self.task(id).await;
            task.claim_no == claim_no && task.status == status
        })
        .await;
        self.task(id).await
    }

    /// Kills it as far as that goes within one process: everything stops where it is, nothing is given back.
    pub async fn kill(&self) {
        self.shutdown.force();
        self.shutdown.finished().await;
    }
}

/// An executor that does what a closure says.
pub struct Script<F>(F);

impl<F, W> Script<F>
where
    F: Fn(Run) -> W + Send + Sync + 'static,
    W: Future<Output = Decision> + Send + 'static,
{
    #[allow(clippy::new_ret_no_self, reason = "only ever used as an executor")]
    pub fn new(script: F) -> Arc<dyn TaskExecutor> {
        Arc::new(Self(script))
    }
}

impl<F, W> TaskExecutor for Script<F>
where
    F: Fn(Run) -> W + Send + Sync + 'static,
    W: Future<Output = Decision> + Send + 'static,
{
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision> {
        (self.0)(run).boxed()
    }
}

/// Work that lasts until it is stopped.
pub fn endless() -> Arc<dyn TaskExecutor> {
    Script::new(|run: Run| async move {
        run.cancelled().cancelled().await;
        Decision::Done(Done::default())
    })
}

/// Whoever does something by hand in a test.
pub fn author() -> Author {
    Author { name: "operator".to_owned(), address: "127.0.0.1".to_owned(), request_id: RequestId(uuid::Uuid::nil()) }
}

pub fn demo(payload: &str) -> Submission {
    Submission {
        kind: Kind::Demo,
        agenda_id: None,
        payload: payload.to_owned(),
        client_reference: None,
        run_at: None,
        callback_url: None,
        idempotency: None,
        caller: "test".to_owned(),
        via: Via::V2,
        trace: None,
    }
}

pub fn protocol(agenda: &str) -> Submission {
    Submission {
        kind: Kind::Protocol,
        agenda_id: Some(agenda.parse().expect("an agenda id")),
        payload: format!(r#"{{"agendaId":"{agenda}"}}"#),
        ..demo("{}")
    }
}

pub fn with_key(mut submission: Submission, key: &str, fingerprint: &str) -> Submission {
    submission.idempotency = Some(Idempotency { scope: "test".to_owned(), key: key.to_owned(), fingerprint: fingerprint.to_owned() });
    submission
}

/// The process's metrics; tests that look at them have a process of their own.
pub fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| metrics::install().expect("the first to install it"))
}

/// The value of one series, rounded; named as in the exposition without the prefix.
pub fn metric(series: &str) -> i64 {
    let rendered = recorder().render();
    let line = rendered.lines().find_map(|line| line.strip_prefix("protocol_bridge_")?.strip_prefix(series)?.strip_prefix(' '));
    let value: f64 = line.unwrap_or_else(|| panic!("{series} is not in\n{rendered}")).parse().expect("a number");
    format!("{value:.0}").parse().expect("a whole number")
}
