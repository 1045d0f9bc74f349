//! The only place that knows all floors: puts the parts together, runs them, and takes them apart again.
//!
//! Start: lock the data folder (SQLite), take the port, open the database, then everything else from the ground up. Whatever fails leaves nothing running.
//! End: announce (still serving, `/readyz` red), then stop taking work and let what runs finish within its grace, then close the database. A crash anywhere is
//! what leases and the rescuer are for.

mod belonging;
mod gauges;
mod signals;
mod start_error;

pub use belonging::{STORE_ID_SETTING, Stranger};
pub use start_error::StartError;

use crate::base::limits; // goes with v1
use crate::bridge::{self, Bridge}; // goes with v1
use crate::{
    base::{
        build::{COMMIT, VERSION},
        clock::Clock,
        config::{Config, Migrate, NatsServers, Toggle},
        disk::FreeSpace,
        entropy::Entropy,
        metrics, otlp,
        secret_key::SecretKey,
        shutdown::Shutdown,
        tls,
    },
    callers::{Callers, Ledger, RateLimit},
    domain::task::Kind,
    engine::{
        Demo, Engine, EventStream, EventsInJetStream, Parts, TaskExecutor, Telling,
        transport::{self, JetStream, Local, Transport},
    },
    generator::{Generator, documents::DocumentStore, orphans::Orphans, renderer_in_process::InProcessRenderer},
    http::{self, Api, routes::readyz::LastAnswer},
    store::{Db, Dialect, Options, lock::ServingLock},
};
use gauges::Gauges;
use signals::{Signal, Signals};
use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// How long things may take to stop once they have been told to stop at once, and how long a drain may run over its graces.
const LAST_WAIT: Duration = Duration::from_secs(3);

// goes with v1: begin
/// Open files that are not for calls which wait: the database, the agenda source, documents, and everyone who asks how a task stands.
const RESERVED_FILES: u64 = 256;
// goes with v1: end

/// The running service.
pub struct App {
    address: SocketAddr,
    config: Arc<Config>,
    clock: Clock,
    db: Db,
    engine: Engine,
    generator: Generator,
    ledger: Ledger,
    draining: CancellationToken,
    shutdown: Shutdown,
    server: JoinHandle<io::Result<()>>,
    /// Held until the last write; the next process starts when it is gone.
    _lock: Option<ServingLock>,
}

/// How the service ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All that ran has finished or was given back.
    Drained,
    /// A second signal, or a grace that ran out: the rest was dropped, and its leases run out by themselves.
    Stopped,
    /// This loop panicked again and again.
    GaveUp(&'static str),
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("address", &self.address).finish_non_exhaustive()
    }
}

impl App {
    /// Starts everything on the machine's clock and randomness; returns when requests are served.
    ///
    /// # Errors
    /// When a part cannot be had; nothing runs then.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with(config, Clock::system(), Entropy::system()).await
    }

    /// As [`App::start`], with a clock and randomness of the caller's own.
    ///
    /// # Errors
    /// As [`App::start`].
    pub async fn start_with(config: Config, clock: Clock, entropy: Entropy) -> Result<Self, StartError> {
        tls::install();
        otlp::install(&config.telemetry)?;
        let metrics = metrics::install()?;
        metrics::BUILD_INFO.set(&[VERSION, COMMIT], 1.0);
        // goes with v1: begin
        let presentation = present(&config, &clock).await?;
        // goes with v1: end
        let lock = lock(&config, &clock).await?;
        let listener = listen(config.http.listen).await?;
        let address = listener.local_addr().map_err(|source| StartError::Listen { address: config.http.listen, source })?;

        let db = open_database(&config, config.database.migrate == Migrate::Auto, &clock, &entropy).await?;
        let shutdown = Shutdown::new();
        let documents = DocumentStore::open(&config.documents, &config.data_dir)?;
        belonging::check(&documents, &db, &clock, &entropy).await?;
        let renderer = Arc::new(InProcessRenderer::new(Some(config.generator.renderers).filter(|renderers| *renderers > 0)));
        let generator = Generator::new(&config, db.clone(), clock.clone(), entropy.clone(), documents.clone(), renderer)
            .map_err(StartError::Generator)?;
        Orphans::new(db.clone(), documents, clock.clone(), entropy.clone()).start(&shutdown);
        let callers = Callers::new(&config).map_err(StartError::Callers)?;
        let disk = FreeSpace::new(config.data_dir.clone(), config.engine.min_free_space.as_u64());
        let transport = transport(&config, &clock, &shutdown).await?;
        let mut telling = Telling::new(config.events.clone(), secret_key(&config, &db, &entropy)?);
        telling.stream = event_stream(&config, &clock, &shutdown).await?;
        let engine = Engine::start(
            Parts {
                config: config.engine.clone(),
                poll_interval: config.legacy.poll_interval,
                grace: config.shutdown.grace,
                lease_store: (db.dialect() == Dialect::Postgres).then(|| lease_store(options(&config, false, &clock, &entropy))),
                db: db.clone(),
                transport,
                clock: clock.clone(),
                entropy: entropy.clone(),
                executors: executors(&config, &db, &generator),
                telling,
                disk: Some(disk.clone()),
            },
            &shutdown,
        );
        engine.configure_subscriptions().await?;
        let ledger = Ledger::new(db.clone(), clock.clone(), callers.clone(), config.legacy.quiet_period);
        ledger.start(&shutdown);
        Gauges::new(db.clone(), clock.clone(), disk, metrics.clone()).start(&shutdown);
        // goes with v1: begin
        let bridge = Bridge::new(bridge::Parts {
            config: config.legacy.clone(),
            engine: engine.clone(),
            generator: generator.clone(),
            db: db.clone(),
            clock: clock.clone(),
            ledger: ledger.clone(),
            presentation,
            most_waiters: limits::open_files().map(|files| usize::try_from(files.saturating_sub(RESERVED_FILES)).unwrap_or(usize::MAX)),
            shutdown: shutdown.clone(),
        });
        // goes with v1: end
        let config = Arc::new(config);
        let draining = CancellationToken::new();
        let router = http::router(Api {
            config: Arc::clone(&config),
            engine: engine.clone(),
            generator: generator.clone(),
            bridge, // goes with v1
            callers,
            rate_limit: RateLimit::new(config.auth.rate_limit),
            ledger: ledger.clone(),
            database: LastAnswer::now(&clock),
            db: db.clone(),
            clock: clock.clone(),
            entropy,
            metrics,
            draining: draining.clone(),
            shutdown: shutdown.clone(),
        });
        let server = shutdown.spawn("http server", http::server::serve(listener, router, clock.clone(), shutdown.clone()));
        Ok(Self { address, config, clock, db, engine, generator, ledger, draining, shutdown, server, _lock: lock })
    }

    /// Where it listens; the port that was found when 0 was configured.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Cancelled when the drain is announced.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Ids of agendas to try, if the source can list any now.
    pub async fn sample_ids(&self) -> Vec<String> {
        const ENOUGH: usize = 8;
        let listed = self.generator.agendas(None, ENOUGH).await.map(|(agendas, _)| agendas).unwrap_or_default();
        listed.into_iter().map(|agenda| agenda.agenda_id.to_string()).collect()
    }

    /// Serves until a signal asks it to end, then drains. SIGINT skips the announcement; a second signal is a hard stop.
    pub async fn run_until_shutdown(self) -> Ended {
        let mut signals = Signals::listen();
        let announce = tokio::select! {
            signal = signals.next() => signal == Signal::Terminate,
            // A loop gave up.
            () = self.shutdown.hard().cancelled() => false,
        };
        tokio::select! {
            ended = self.drain(announce) => ended,
            _ = signals.next() => {
                tracing::warn!("a second signal: stopping at once; leases run out by themselves");
                self.shutdown.force();
                self.close().await;
                Ended::Stopped
            }
        }
    }

    /// The drain sequence; `announce`: first go on serving for a while, so that load balancers see `/readyz` red and look elsewhere.
    pub async fn drain(&self, announce: bool) -> Ended {
        self.draining.cancel();
        if announce && !self.shutdown.hard().is_cancelled() {
            tracing::info!("draining: still serving, not ready any more");
            self.clock.sleep(self.config.shutdown.announce).await;
        }
        tracing::info!(
            attemptGraceSeconds = self.config.shutdown.grace.as_secs(),
            waiterGraceSeconds = self.config.shutdown.waiter_grace().as_secs(),
            "draining: nothing new"
        );
        self.shutdown.begin();
        let waiters = async {
            self.clock.sleep(self.config.shutdown.waiter_grace()).await;
            self.engine.hub().drain();
            std::future::pending::<()>().await;
        };
        let most = self.config.shutdown.grace.max(self.config.shutdown.waiter_grace()) + LAST_WAIT;
        let in_time = tokio::select! {
            () = self.shutdown.finished() => true,
            () = waiters => false,
            () = self.clock.sleep(most) => false,
        };
        if !in_time {
            tracing::warn!("the drain ran over its grace; stopping at once");
            self.shutdown.force();
        }
        self.close().await;
        if let Some(name) = self.shutdown.failed() {
            return Ended::GaveUp(name);
        }
        if in_time { Ended::Drained } else { Ended::Stopped }
    }

    /// The last writes, then the database; bounded, because a database that is away must not hold the process.
    async fn close(&self) {
        let closing = async {
            self.shutdown.finished().await;
            self.ledger.flush().await;
            self.db.close().await;
            otlp::finish().await;
        };
        tokio::select! {
            () = closing => tracing::info!("stopped"),
            () = self.clock.sleep(LAST_WAIT) => tracing::warn!("stopped without waiting for the rest"),
        }
        self.server.abort();
    }

    /// Stops at once, as a second signal does.
    pub fn force(&self) {
        self.shutdown.force();
    }
}

// goes with v1: begin
/// How v1 presents a protocol: `legacy.response` is compiled and tried on a sample.
///
/// # Errors
/// When it cannot be used.
pub async fn present(config: &Config, clock: &Clock) -> Result<bridge::Presentation, StartError> {
    let shape = http::shapes::ProtocolResponse::json_of;
    bridge::Presentation::tried(config.legacy.response.as_deref(), shape, clock.clone())
        .await
        .map_err(|error| StartError::Response(error.to_string()))
}
// goes with v1: end

/// What seals secrets: the configured key, or on SQLite one that is made and kept beside the database.
fn secret_key(config: &Config, db: &Db, entropy: &Entropy) -> Result<Option<SecretKey>, StartError> {
    let written = config.auth.secret_key.expose().trim();
    if !written.is_empty() {
        return Ok(Some(SecretKey::new(written)));
    }
    match db.dialect() {
        Dialect::Sqlite => SecretKey::kept_in(&config.data_dir, entropy).map(Some).map_err(StartError::SecretKey),
        Dialect::Postgres => Ok(None),
    }
}

/// SQLite has one serving process per data folder; on PostgreSQL there may be many.
async fn lock(config: &Config, clock: &Clock) -> Result<Option<ServingLock>, StartError> {
    if !config.database_url().starts_with("sqlite:") {
        return Ok(None);
    }
    ServingLock::acquire(&config.data_dir, clock).await.map(Some).map_err(StartError::Database)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::Taken(address),
        _ => StartError::Listen { address, source },
    })
}

/// Opens the configured database.
///
/// # Errors
/// When it cannot be reached, or its schema is not the one needed.
pub async fn open_database(config: &Config, migrate: bool, clock: &Clock, entropy: &Entropy) -> Result<Db, StartError> {
    std::fs::create_dir_all(&config.data_dir).map_err(|source| StartError::DataDir { path: config.data_dir.clone(), source })?;
    Db::open(options(config, migrate, clock, entropy)).await.map_err(StartError::Database)
}

/// An engine none of whose loops run: for commands that change something in the database and leave the work to those who serve.
#[must_use]
pub fn engine_at_rest(config: &Config, db: &Db, clock: &Clock, entropy: &Entropy) -> Engine {
    let parts = Parts {
        config: config.engine.clone(),
        poll_interval: config.legacy.poll_interval,
        grace: Duration::ZERO,
        db: db.clone(),
        lease_store: None,
        transport: Arc::new(Local::new(1)),
        clock: clock.clone(),
        entropy: entropy.clone(),
        executors: HashMap::new(),
        telling: Telling::new(config.events.clone(), None),
        disk: None,
    };
    Engine::by_hand(parts, &Shutdown::new()).0
}

fn options(config: &Config, migrate: bool, clock: &Clock, entropy: &Entropy) -> Options {
    Options {
        url: config.database_url(),
        listen_url: Some(config.database.listen_url.expose().to_owned()).filter(|url| !url.is_empty()),
        max_connections: config.database.max_connections,
        migrate,
        clock: clock.clone(),
        entropy: entropy.clone(),
    }
}

/// Lease renewals take the direct way, past any pooler: they must wait for nobody.
fn lease_store(options: Options) -> Options {
    Options { url: options.listen_url.unwrap_or(options.url), listen_url: None, max_connections: 2, ..options }
}

async fn transport(config: &Config, clock: &Clock, shutdown: &Shutdown) -> Result<Arc<dyn Transport>, StartError> {
    if !config.engine.uses_nats() {
        return Ok(Arc::new(Local::new(config.engine.max_running)));
    }
    let servers = NatsServers::parse(config.engine.transport.expose()).map_err(transport::jetstream::Error::Address)?;
    Ok(Arc::new(JetStream::start(&servers, &config.engine.nats_prefix, clock.clone(), shutdown).await?))
}

/// Where events go beside webhooks, if the configuration says so.
async fn event_stream(config: &Config, clock: &Clock, shutdown: &Shutdown) -> Result<Option<Arc<dyn EventStream>>, StartError> {
    let Some(subject) = config.events.nats_subject.as_ref().filter(|_| config.engine.uses_nats()) else { return Ok(None) };
    let servers = NatsServers::parse(config.engine.transport.expose()).map_err(transport::jetstream::Error::Address)?;
    Ok(Some(EventsInJetStream::start(&servers, &config.engine.nats_prefix, subject, clock.clone(), shutdown).await?))
}

fn executors(config: &Config, db: &Db, generator: &Generator) -> HashMap<Kind, Arc<dyn TaskExecutor>> {
    let mut executors: HashMap<Kind, Arc<dyn TaskExecutor>> = HashMap::new();
    executors.insert(Kind::Protocol, Arc::new(generator.clone()));
    let demo = match config.engine.demo {
        Toggle::On => true,
        Toggle::Off => false,
        Toggle::Auto => db.dialect() == Dialect::Sqlite,
    };
    if demo {
        executors.insert(Kind::Demo, Arc::new(Demo));
    }
    executors
}
