//! SQLite: one writer on its own thread, readers beside it.
//!
//! WAL with `synchronous = FULL`: what was committed survives a power cut. `BEGIN IMMEDIATE` takes the write lock before anything is read, so a transaction
//! never finds out half-way that another process wrote in between. Readers see the snapshot of their first query and never wait for the writer.

use super::{
    Error, Result, Tx,
    db::Options,
    measure::Measure,
    migrate,
    repeat::{self, pause},
    sqlite_job::Work,
    sqlite_writer::{self, Handle},
    tasks::Tasks,
};
use crate::base::entropy::Entropy;
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{
    ConnectOptions as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{panic::AssertUnwindSafe, path::Path, str::FromStr as _, time::Duration};
use tokio::sync::oneshot;

/// How long one BEGIN waits for another process's write before it counts as refused (and is repeated).
const BUSY: Duration = Duration::from_secs(5);
const ACQUIRE: Duration = Duration::from_secs(5);
/// Each reader is a thread; reads are short.
const READERS: u32 = 4;

#[derive(Debug)]
pub(super) struct Sqlite {
    writer: Handle,
    readers: SqlitePool,
    tasks: Tasks,
    entropy: Entropy,
}

impl Sqlite {
    pub(super) async fn open(options: &Options, tasks: Tasks) -> Result<Self> {
        let connect = SqliteConnectOptions::from_str(&options.url)?
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .statement_cache_capacity(500);
        let path = connect.get_filename().to_owned();
        if options.url.contains(":memory:") || options.url.contains("mode=memory") {
            return Err(Error::Schema("an in-memory SQLite database cannot be shared by a writer and readers: name a file".to_owned()));
        }
        prepare_folder(&path, options.migrate)?;

        let write = connect.clone().create_if_missing(options.migrate).journal_mode(SqliteJournalMode::Wal);
        let lock = migrate::lock(&path).await?;
        let mut connection = connect_writer(&write, &options.entropy).await?;
        migrate::sqlite(&mut connection, options.migrate).await?;
        drop(lock);

        let readers = SqlitePoolOptions::new()
            .max_connections(options.max_connections.clamp(1, READERS))
            .acquire_timeout(ACQUIRE)
            .test_before_acquire(false) // there is no network between us and the file
            .connect_lazy_with(connect.read_only(true));
        let writer = sqlite_writer::start(connection, write, options.entropy.clone())?;
        Ok(Self { writer, readers, tasks, entropy: options.entropy.clone() })
    }

    /// Queues `work` for the writer. Once queued it runs, whether or not the caller waits.
    pub(super) async fn write<T, F>(&self, name: &'static str, urgent: bool, work: F, measure: Measure) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.writer.queue(Box::new(Work::new(name, work, tell, measure)), urgent)?;
        told.await.unwrap_or(Err(Error::Closed))
    }

    pub(super) async fn read<T, F>(&self, name: &'static str, work: F, measure: Measure) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let (readers, entropy) = (self.readers.clone(), self.entropy.clone());
        let repeated = async move {
            let mut repeats = 0;
            let answer = loop {
                match read_once(&readers, name, &work).await {
                    Err(error) if error.is_conflict() && repeats < repeat::LIMIT => {
                        repeats += 1;
                        pause(&entropy, repeats).await;
                    }
                    answer => break answer,
                }
            };
            measure.record();
            answer
        };
        self.tasks.run(name, repeated).await
    }

    pub(super) fn in_use(&self) -> u32 {
        let idle = u32::try_from(self.readers.num_idle()).unwrap_or(u32::MAX);
        self.readers.size().saturating_sub(idle) + u32::from(self.writer.is_busy())
    }

    /// The writer is one more.
    pub(super) fn most_connections(&self) -> u32 {
        self.readers.options().get_max_connections() + 1
    }

    /// Readers first: the last connection to go folds the WAL back into the file, and only the writer may.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

async fn read_once<T, F>(readers: &SqlitePool, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    let mut snapshot = readers.begin().await?;
    let answer = {
        let mut tx = Tx::Sqlite(&mut snapshot);
        AssertUnwindSafe(async { work(&mut tx).await }).catch_unwind().await
    };
    // Nothing was written, so how the snapshot ends changes nothing.
    let _ = snapshot.rollback().await;
    answer.unwrap_or(Err(Error::Panicked(name)))
}

fn prepare_folder(database: &Path, create: bool) -> Result<()> {
    let file = |source| Error::System { what: format!("{} cannot be opened", database.display()), source };
    match database.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if create => std::fs::create_dir_all(folder).map_err(file)?,
        _ => {}
    }
    if !create && !database.try_exists().map_err(file)? {
        return Err(Error::Schema(format!(
            "there is no database at {} and database.migrate is off: run `protocol-bridge migrate` first",
            database.display()
        )));
    }
    Ok(())
}

/// Switching to WAL is refused at once while another process uses the file, whatever the busy timeout: so it is asked again.
async fn connect_writer(options: &SqliteConnectOptions, entropy: &Entropy) -> Result<SqliteConnection> {
    let mut repeats = 0;
    loop {
        match options.connect().await.map_err(Error::Sql) {
            Err(error) if error.is_conflict() && repeats < 3 * repeat::LIMIT => {
                repeats += 1;
                pause(entropy, repeats).await;
            }
            answer => return answer,
        }
    }
}
