//! The database: named, repeatable transactions on SQLite (one writer thread, group commit, savepoints) or PostgreSQL (a task of its own each).
//!
//! A transaction either happened as a whole or not at all, whoever still waits for it. After a crash in the middle it has not happened; after a crash between
//! its commit and the answer it has, and nobody was told: whoever must know looks for what it wrote.

use super::{Error, Fault, Faults, Result, Tx, measure::Measure, postgres::Postgres, sqlite::Sqlite, tasks::Tasks, wakeups::Wakeups};
use crate::base::{
    clock::{Clock, Followed},
    entropy::Entropy,
};
use futures::future::BoxFuture;
use std::{fmt, sync::Arc};

/// A handle to the store; cheap to clone.
#[derive(Debug, Clone)]
pub struct Db(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Backend,
    faults: Faults,
    clock: Clock,
    tasks: Tasks,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

/// Which of the two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

/// How to open the store.
#[derive(Clone)]
pub struct Options {
    /// `postgres://…` or `sqlite:PATH`.
    pub url: String,
    /// PostgreSQL behind a pooler: the server itself, for what needs a session of its own. `None`: `url` is the server itself.
    pub listen_url: Option<String>,
    pub max_connections: u32,
    /// Apply migrations; otherwise a schema that is not the newest is refused.
    pub migrate: bool,
    pub clock: Clock,
    pub entropy: Entropy,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Before the @ stand a name and a password.
        let place = self.url.rsplit_once('@').map_or(self.url.as_str(), |(_, place)| place);
        f.debug_struct("Options")
            .field("place", &place)
            .field("max_connections", &self.max_connections)
            .field("migrate", &self.migrate)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Queue,
    Urgent,
    Read,
}

impl Db {
    /// Opens the store, brings its schema up to date if asked to, and on PostgreSQL sets `options.clock` by the database's.
    ///
    /// # Errors
    /// When the database cannot be reached or its schema is not the one needed.
    pub async fn open(options: Options) -> Result<Self> {
        let tasks = Tasks::default();
        let backend = match options.url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Backend::Sqlite(Sqlite::open(&options, tasks.clone()).await?),
            Some("postgres" | "postgresql") => Backend::Postgres(Box::new(Postgres::open(&options, tasks.clone()).await?)),
            _ => return Err(Error::Schema("a database URL starts with sqlite: or postgres://".to_owned())),
        };
        Ok(Self(Arc::new(Inner { backend, faults: Faults::default(), clock: options.clock, tasks })))
    }

    /// Runs `work` in a transaction, on the store's own task: dropping the returned future does not stop it. `work` may run more than once (serialization
    /// failures, deadlocks, SQLITE_BUSY), so it owns its inputs and makes ids outside. An `Err` from it rolls back. It waits for nothing but the database: on
    /// SQLite everybody else waits for it, and one that called the store for another transaction would wait for itself.
    ///
    /// # Errors
    /// What `work` answered, or what the database did.
    pub async fn transaction<T, F>(&self, name: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        self.run(name, Lane::Queue, work).await
    }

    /// As [`Db::transaction`], ahead of everything that waits for the writer: for lease renewals.
    ///
    /// # Errors
    /// As [`Db::transaction`].
    pub async fn urgent<T, F>(&self, name: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        self.run(name, Lane::Urgent, work).await
    }

    /// Runs read-only `work` beside the writer. SQLite: one snapshot for all its queries; PostgreSQL: each query sees what is committed.
    ///
    /// # Errors
    /// What `work` answered, or what the database did.
    pub async fn read<T, F>(&self, name: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        self.run(name, Lane::Read, work).await
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self.0.backend {
            Backend::Sqlite(_) => Dialect::Sqlite,
            Backend::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Lets our clock follow the database's, if that has one of its own; opening the store has done so once already.
    ///
    /// # Errors
    /// When the database is away; our clock goes on as it was.
    pub async fn follow_clock(&self) -> Result<Followed> {
        match &self.0.backend {
            Backend::Sqlite(_) => Ok(Followed::Agrees),
            Backend::Postgres(postgres) => postgres.follow_clock(&self.0.clock).await,
        }
    }

    /// A session that hears and gives hints to other processes; `None` on SQLite, where there is one process.
    ///
    /// # Errors
    /// When the database is away, or knows no such thing.
    pub async fn wakeups(&self) -> Result<Option<Wakeups>> {
        match &self.0.backend {
            Backend::Sqlite(_) => Ok(None),
            Backend::Postgres(postgres) => postgres.wakeups().await.map(Some),
        }
    }

    /// Connections in use now, for the metric.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        match &self.0.backend {
            Backend::Sqlite(sqlite) => sqlite.in_use(),
            Backend::Postgres(postgres) => postgres.in_use(),
        }
    }

    /// The most connections there can be, for the metric.
    #[must_use]
    pub fn most_connections(&self) -> u32 {
        match &self.0.backend {
            Backend::Sqlite(sqlite) => sqlite.most_connections(),
            Backend::Postgres(postgres) => postgres.most_connections(),
        }
    }

    /// The named fault hook of tests.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Finishes what runs and closes every connection.
    pub async fn close(&self) {
        self.0.tasks.close().await;
        match &self.0.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
            Backend::Postgres(postgres) => postgres.close().await,
        }
    }

    async fn run<T, F>(&self, name: &'static str, lane: Lane, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        match self.0.faults.take(name) {
            None => self.0.execute(name, lane, work).await,
            Some(Fault::FailBefore) => Err(Error::Injected(name)),
            Some(Fault::FailAfter) => self.0.execute(name, lane, work).await.and(Err(Error::Injected(name))),
            Some(Fault::KilledBefore) => std::future::pending().await,
            Some(Fault::KilledAfter) => {
                let _ = self.0.execute(name, lane, work).await;
                std::future::pending().await
            }
            Some(Fault::Delay(delay)) => {
                let inner = self.0.clone();
                // On a task of its own, so that it runs in the end even if the caller is gone by then.
                let delayed = async move {
                    inner.clock.sleep(delay).await;
                    inner.execute(name, lane, work).await
                };
                self.0.tasks.run(name, delayed).await
            }
        }
    }
}

impl Inner {
    async fn execute<T, F>(&self, name: &'static str, lane: Lane, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let _running = self.faults.run();
        let measure = Measure::start(name, &self.clock);
        match (&self.backend, lane) {
            (Backend::Sqlite(sqlite), Lane::Queue) => sqlite.write(name, false, work, measure).await,
            (Backend::Sqlite(sqlite), Lane::Urgent) => sqlite.write(name, true, work, measure).await,
            (Backend::Sqlite(sqlite), Lane::Read) => sqlite.read(name, work, measure).await,
            (Backend::Postgres(postgres), Lane::Queue | Lane::Urgent) => postgres.write(name, work, measure).await,
            (Backend::Postgres(postgres), Lane::Read) => postgres.read(name, work, measure).await,
        }
    }
}
