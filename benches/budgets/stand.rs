//! Where it is measured: durable databases of both kinds, and engines as the service makes them.

use crate::support::{TestDatabase, postgres::Cluster};
use futures::{FutureExt as _, future::BoxFuture};
use protocol_bridge::{
    base::{clock::Clock, config, entropy::Entropy, shutdown::Shutdown},
    domain::task::Kind,
    engine::{Decision, Done, Engine, Parts, Run, Submission, TaskExecutor, Ticks, Via, transport::Local},
    store::{Db, Dialect, Options},
};
use std::{collections::HashMap, sync::Arc};

/// For the program when it is measured: a line for each request would be measured with it. What is left says where it listens.
pub const QUIET: (&str, &str) = ("PROTOCOL_BRIDGE__TELEMETRY__LOG", "warn,protocol_bridge::http::server=info");

/// PostgreSQL with fsync, and a disk for SQLite.
#[derive(Debug)]
pub struct Stand {
    pub cluster: Cluster,
}

impl Stand {
    pub fn start() -> Self {
        Self { cluster: Cluster::durable() }
    }

    /// A fresh database of each kind, SQLite first.
    pub async fn databases(&self) -> [TestDatabase; 2] {
        [TestDatabase::sqlite().await, TestDatabase::postgres_on(&self.cluster.url()).await]
    }
}

pub fn name(database: &TestDatabase) -> &'static str {
    match database.dialect {
        Dialect::Sqlite => "SQLite",
        Dialect::Postgres => "PostgreSQL",
    }
}

fn options(database: &TestDatabase, max_connections: u32) -> Options {
    Options { max_connections, ..database.options(Clock::system(), Entropy::system()) }
}

/// The store as the service opens it.
pub async fn open(database: &TestDatabase) -> Db {
    let max_connections = protocol_bridge::base::config::Config::default().database.max_connections;
    Db::open(options(database, max_connections)).await.expect("the store opens")
}

fn parts(database: &TestDatabase, db: &Db, executor: Arc<dyn TaskExecutor>) -> Parts {
    let config: config::Engine = config::Engine { max_pending: 10_000_000, ..config::Config::default().engine };
    Parts {
        poll_interval: config::Config::default().legacy.poll_interval,
        grace: std::time::Duration::from_secs(5),
        lease_store: (database.dialect == Dialect::Postgres).then(|| Options { migrate: false, ..options(database, 2) }),
        db: db.clone(),
        transport: Arc::new(Local::new(config.max_running)),
        clock: Clock::system(),
        entropy: Entropy::system(),
        executors: HashMap::from([(Kind::Demo, executor)]),
        disk: None,
        telling: protocol_bridge::engine::Telling::new(protocol_bridge::base::config::Config::default().events, None),
        config,
    }
}

/// An engine whose loops run.
pub fn engine(database: &TestDatabase, db: &Db, executor: Arc<dyn TaskExecutor>) -> (Engine, Shutdown) {
    let shutdown = Shutdown::new();
    (Engine::start(parts(database, db, executor), &shutdown), shutdown)
}

/// An engine that accepts and does nothing else.
pub fn engine_at_rest(database: &TestDatabase, db: &Db) -> Engine {
    ticks(database, db).0
}

/// The same, with its loops' ticks to be called by hand.
pub fn ticks(database: &TestDatabase, db: &Db) -> (Engine, Ticks) {
    Engine::by_hand(parts(database, db, Noop::new(|_| {})), &Shutdown::new())
}

/// An executor that is done at once and says that it was there.
pub struct Noop<F>(F);

impl<F: Fn(&Run) + Send + Sync + 'static> Noop<F> {
    #[allow(clippy::new_ret_no_self, reason = "only ever used as an executor")]
    pub fn new(entered: F) -> Arc<dyn TaskExecutor> {
        Arc::new(Self(entered))
    }
}

impl<F: Fn(&Run) + Send + Sync + 'static> TaskExecutor for Noop<F> {
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision> {
        (self.0)(&run);
        std::future::ready(Decision::Done(Done::default())).boxed()
    }
}

pub fn noop() -> Submission {
    Submission {
        kind: Kind::Demo,
        agenda_id: None,
        payload: "{}".to_owned(),
        client_reference: None,
        run_at: None,
        callback_url: None,
        idempotency: None,
        caller: "bench".to_owned(),
        via: Via::V2,
        trace: None,
    }
}

/// Submits `count` tasks, 64 at a time.
pub async fn submit(engine: &Engine, count: usize) {
    use futures::StreamExt as _;
    futures::stream::iter(0..count).for_each_concurrent(64, |_| async { drop(engine.submit(noop(), None).await.expect("accepted")) }).await;
}

/// Waits until nothing is active any more.
pub async fn drained(database: &TestDatabase) {
    const ACTIVE: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE status IN ('PENDING', 'IN_PROGRESS') LIMIT 1) AS active";
    while database.number(ACTIVE).await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
