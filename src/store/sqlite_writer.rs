//! The SQLite writer: one connection, on a thread of its own, that commits whatever waits in groups.
//!
//! A commit costs an fsync however much it holds, so all that queued up while the last one ran goes into the next. Inside the group each transaction has a
//! savepoint: one that fails or panics is undone alone. Callers are told after the commit. A crash before it means that nothing of the group happened.
//! Urgent transactions (lease renewals) go to the head of the queue: a group that is under way is cut short for them.

use super::{
    Error, Result,
    repeat::{self, pause},
    sqlite_job::{Job, Verdict},
};
use crate::base::{chain::chain, entropy::Entropy};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A log that has grown over this is folded back into the database and cut off: readers that overlap keep SQLite from ever beginning it anew by itself.
const LOG_LIMIT: u64 = 32 * 1024 * 1024;
/// If a reader holds it, that is tried again when the log has grown by this much more.
const LOG_STEP: u64 = 4 * 1024 * 1024;
/// Readers are not waited for as long as another writer would be.
const FOLD: &str = "PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 5000";

/// Transactions in one commit: bounds how long the first of them waits for the last.
const GROUP: usize = 256;

// The worker thread behind the connection costs a hand-over per call, so what always follows each other goes in one.
const BEGIN: &str = "BEGIN IMMEDIATE; SAVEPOINT member";
const KEEP_AND_NEXT: &str = "RELEASE member; SAVEPOINT member";
const UNDO: &str = "ROLLBACK TO member"; // leaves the savepoint open for the next member
const COMMIT: &str = "COMMIT";

type Queue = VecDeque<Box<dyn Job>>;

/// The way to the writer; dropping the last one lets it finish what is queued and end.
#[derive(Debug)]
pub(super) struct Handle {
    queue: mpsc::UnboundedSender<Box<dyn Job>>,
    urgent: mpsc::UnboundedSender<Box<dyn Job>>,
    closing: CancellationToken,
    ended: CancellationToken,
    busy: Arc<AtomicBool>,
    _close_on_drop: DropGuard,
}

impl Handle {
    /// The queue is as long as there are callers: it holds one entry for each of them.
    pub(super) fn queue(&self, job: Box<dyn Job>, urgent: bool) -> Result<()> {
        let lane = if urgent { &self.urgent } else { &self.queue };
        lane.send(job).map_err(|_| Error::Closed)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Finishes what is queued and closes the connection.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.ended.cancelled().await;
    }
}

/// Starts the writer's thread.
pub(super) fn start(connection: SqliteConnection, options: SqliteConnectOptions, entropy: Entropy) -> Result<Handle> {
    let (queue, queued) = mpsc::unbounded_channel();
    let (urgent, urgently) = mpsc::unbounded_channel();
    let (closing, ended) = (CancellationToken::new(), CancellationToken::new());
    let busy = Arc::new(AtomicBool::new(false));
    let mut log = options.get_filename().as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    let writer = Writer {
        connection: Some(connection),
        options,
        queued,
        urgent: urgently,
        put_back: Queue::new(),
        alone: 0,
        closing: closing.clone(),
        busy: busy.clone(),
        entropy,
        log,
        fold_at: LOG_LIMIT,
    };
    let thread = |source| Error::System { what: "the SQLite writer cannot be started".to_owned(), source };
    // A runtime of its own: however busy the other threads are, leases are renewed.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(thread)?;
    let guard = ended.clone().drop_guard();
    std::thread::Builder::new()
        .name("sqlite-writer".to_owned())
        .spawn(move || {
            let _ended = guard;
            runtime.block_on(writer.run());
        })
        .map_err(thread)?;
    Ok(Handle { queue, urgent, _close_on_drop: closing.clone().drop_guard(), closing, ended, busy })
}

struct Writer {
    /// None after it was lost, until it is opened again.
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    queued: mpsc::UnboundedReceiver<Box<dyn Job>>,
    urgent: mpsc::UnboundedReceiver<Box<dyn Job>>,
    /// To run before anything in the queue: what was cut short or is to be repeated.
    put_back: Queue,
    /// How many of those at its head are to run alone.
    alone: usize,
    closing: CancellationToken,
    busy: Arc<AtomicBool>,
    entropy: Entropy,
    /// The write-ahead log's file, and the size at which it is folded back next.
    log: PathBuf,
    fold_at: u64,
}

/// How a group ended; unless it was committed, nothing of it was.
enum End {
    Committed,
    /// Another process was writing: the group is run again.
    Busy(sqlx::Error),
    /// SQLite rolled the whole group back because of one member: the others are run again, each alone.
    Broken(sqlx::Error),
    Failed(sqlx::Error),
}

impl Writer {
    async fn run(mut self) {
        loop {
            let group = self.next_group().await;
            if group.is_empty() {
                break;
            }
            self.busy.store(true, Ordering::Relaxed);
            self.commit(group).await;
            self.keep_log_small().await;
            self.busy.store(false, Ordering::Relaxed);
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await; // every commit is on disk already
        }
    }

    /// The log of what was committed stays bounded, however long and hard is written.
    async fn keep_log_small(&mut self) {
        // No log: the file system will say so when the next commit is written.
        let size = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        if size < self.fold_at {
            return;
        }
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = execute(connection, FOLD).await {
            tracing::debug!(error = chain(&error), "the SQLite log cannot be folded back now");
        }
        let left = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.fold_at = LOG_LIMIT.max(left + LOG_STEP);
        if left > 2 * LOG_LIMIT {
            tracing::warn!(bytes = left, "the SQLite log grows because somebody reads in a transaction that stays open");
        }
    }

    /// Waits for work; an empty group means that there will be none.
    async fn next_group(&mut self) -> Queue {
        if self.put_back.is_empty() {
            tokio::select! {
                biased;
                Some(job) = self.urgent.recv() => return self.urgent_group(job),
                Some(job) = self.queued.recv() => self.put_back.push_back(job),
                () = self.closing.cancelled(), if !self.queued.is_closed() => {
                    // What is queued already is still handed out; new work is refused.
                    self.queued.close();
                    self.urgent.close();
                    return Box::pin(self.next_group()).await;
                }
                else => return Queue::new(),
            }
        }
        if let Ok(job) = self.urgent.try_recv() {
            return self.urgent_group(job);
        }
        let most = if self.alone > 0 { 1 } else { GROUP };
        self.alone = self.alone.saturating_sub(1);
        let mut group = Queue::new();
        while group.len() < most
            && let Some(job) = self.put_back.pop_front().or_else(|| self.queued.try_recv().ok())
        {
            group.push_back(job);
        }
        group
    }

    /// Urgent work shares its commit with nothing else, so that it waits for nothing else.
    fn urgent_group(&mut self, first: Box<dyn Job>) -> Queue {
        let mut group = Queue::from([first]);
        while let Ok(job) = self.urgent.try_recv() {
            group.push_back(job);
        }
        group
    }

    async fn commit(&mut self, mut waiting: Queue) {
        let mut ran = Queue::new();
        let end = self.run_group(&mut waiting, &mut ran).await;
        if !matches!(end, End::Committed) {
            self.clear_away().await;
        }
        let broken = matches!(end, End::Broken(_));
        let again = broken || matches!(end, End::Busy(_));
        let failed = match end {
            End::Committed => None,
            End::Busy(error) | End::Broken(error) | End::Failed(error) => Some(Arc::new(error)),
        };
        let (mut repeats, mut repeated) = (0, Queue::new());
        for mut job in ran {
            let repeat = match job.verdict() {
                Some(Verdict::Undo) => false,
                Some(Verdict::Again) => true,
                Some(Verdict::Keep) | None => again,
            };
            // Alone it cannot be dragged down by another, so being repeated for that ends by itself.
            if repeat && (broken || job.repeats() < repeat::LIMIT) {
                repeats = repeats.max(job.repeat());
                repeated.push_back(job);
            } else {
                job.settle(failed.clone());
            }
        }
        if broken {
            self.alone += repeated.len();
        }
        repeated.append(&mut waiting);
        repeated.append(&mut self.put_back);
        self.put_back = repeated;
        if repeats > 0 && !broken {
            tracing::debug!(repeats, "another process is writing to the SQLite database");
            pause(&self.entropy, repeats).await;
        }
    }

    /// Runs what waits until all has run or something urgent comes in, and commits. What has run is moved to `ran`.
    async fn run_group(&mut self, waiting: &mut Queue, ran: &mut Queue) -> End {
        if let Err(error) = self.begin().await {
            ran.append(waiting);
            return if is_busy(&error) { End::Busy(error) } else { End::Failed(error) };
        }
        let connection = self.connection.as_mut().expect("begin has opened it");
        while let Some(mut job) = waiting.pop_front() {
            let verdict = job.run(connection).await;
            ran.push_back(job);
            let cut_short = !self.urgent.is_empty();
            let last = cut_short || waiting.is_empty();
            let boundary = match verdict {
                Verdict::Keep if last => break, // COMMIT keeps what an open savepoint holds
                Verdict::Keep => KEEP_AND_NEXT,
                Verdict::Undo | Verdict::Again => UNDO,
            };
            // There is no savepoint any more when SQLite has rolled the whole group back by itself (disk full, I/O error). The member that met
            // the error has it as its answer.
            if let Err(error) = execute(connection, boundary).await {
                return End::Broken(error);
            }
            if cut_short {
                break;
            }
        }
        match execute(connection, COMMIT).await {
            Ok(()) => End::Committed,
            Err(error) if is_busy(&error) => End::Busy(error),
            Err(error) => End::Failed(error),
        }
    }

    async fn begin(&mut self) -> sqlx::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            lost => lost.insert(self.options.connect().await?),
        };
        execute(connection, BEGIN).await
    }

    /// After a failure nothing may stay open; a connection that cannot even roll back is replaced.
    async fn clear_away(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        // "No transaction is active" is no failure: SQLite has rolled back by itself already.
        if let Err(error @ (sqlx::Error::WorkerCrashed | sqlx::Error::Io(_))) = execute(connection, "ROLLBACK").await {
            tracing::error!(error = chain(&error), "the connection of the SQLite writer is lost; it is opened again");
            self.connection = None;
        }
    }
}

async fn execute(connection: &mut SqliteConnection, text: &'static str) -> sqlx::Result<()> {
    sqlx::query(text).execute(connection).await.map(|_| ())
}

fn is_busy(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| matches!(code & 0xff, 5 | 6)))
}
