//! PostgreSQL: a pool; each transaction on a task of its own, repeated when it lost to another one.
//!
//! The server's limits end what hangs there. The client has limits of its own for a server that vanished without a word: who begins something is told within
//! seconds, and a dead connection is hung up, so that the next caller gets a live one.

use super::{
    Error, Result, Tx, database_time,
    db::Options,
    error::connection_lost,
    measure::Measure,
    migrate,
    repeat::{self, pause},
    sessions::{CONNECT, Sessions},
    tasks::Tasks,
    wakeups::Wakeups,
};
use crate::base::{
    clock::{Clock, Followed},
    entropy::Entropy,
};
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool, pool::PoolConnection, postgres::PgPoolOptions};
use std::{future::Future, io, panic::AssertUnwindSafe, time::Duration};

/// A connection that lay idle longer is tried before it is used; a busier one would have shown its break.
const TRUST_IDLE: Duration = Duration::from_secs(1);
/// How long the simplest of questions may take on a connection that lives.
const PING: Duration = Duration::from_secs(1);
/// How long a read may take, and a transaction to begin, the wait for a connection included. Reads are short; what takes longer is as good as away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer than any limit of the server's: reached only when a server that took work answers nothing at all.
const SILENCE: Duration = Duration::from_secs(40);
/// By how much this machine's clock may differ from the database's before somebody is told.
const CLOCK_OFF: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Postgres {
    pool: PgPool,
    sessions: Sessions,
    tasks: Tasks,
    entropy: Entropy,
}

impl Postgres {
    pub(super) async fn open(options: &Options, tasks: Tasks) -> Result<Self> {
        let sessions = Sessions::find_out(options).await?;
        let mut connection = sessions.migrating().await?;
        migrate::postgres(&mut connection, options.migrate).await?;
        if let Followed::Forward(by) | Followed::Back(by) = database_time::follow(&mut connection, &options.clock).await?
            && by >= CLOCK_OFF
        {
            tracing::warn!(offBySeconds = by.as_secs_f64(), "this machine's clock is not the database's; the database's is what counts");
        }
        // What was wanted is done; how the goodbye goes changes nothing.
        let _ = connection.close().await;
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections.max(1))
            .acquire_timeout(CONNECT)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| Box::pin(async move { Ok(meta.idle_for <= TRUST_IDLE || lives(connection).await) }))
            .connect_lazy_with(sessions.main());
        Ok(Self { pool, sessions, tasks, entropy: options.entropy.clone() })
    }

    pub(super) async fn write<T, F>(&self, name: &'static str, work: F, measure: Measure) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let (pool, sessions, entropy) = (self.pool.clone(), self.sessions.clone(), self.entropy.clone());
        let repeated = async move {
            let mut repeats = 0;
            let answer = loop {
                match transact(&pool, &sessions, name, &work).await {
                    Err(error) if error.is_conflict() && repeats < repeat::LIMIT => {
                        repeats += 1;
                        tracing::debug!(transaction = name, repeats, "another transaction was in the way");
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

    /// Reading twice does no harm, so a connection that turns out to be dead is replaced quietly.
    pub(super) async fn read<T, F>(&self, name: &'static str, work: F, measure: Measure) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let (pool, sessions, entropy) = (self.pool.clone(), self.sessions.clone(), self.entropy.clone());
        let repeated = async move {
            let (mut repeats, mut dead) = (0, 0);
            let repeat = async {
                loop {
                    match read_once(&pool, &sessions, name, &work).await {
                        Err(error) if error.is_connection_lost() && dead < pool.options().get_max_connections() => dead += 1,
                        Err(error) if error.is_conflict() && repeats < repeat::LIMIT => {
                            repeats += 1;
                            pause(&entropy, repeats).await;
                        }
                        answer => return answer,
                    }
                }
            };
            let answer = tokio::time::timeout(PATIENCE, repeat).await.unwrap_or_else(|_elapsed| Err(Error::Sql(silent())));
            measure.record();
            answer
        };
        self.tasks.run(name, repeated).await
    }

    pub(super) async fn follow_clock(&self, clock: &Clock) -> Result<Followed> {
        let follow = async {
            let mut held = Held(Some(self.pool.acquire().await?));
            let answer = database_time::follow(held.connection(), clock).await;
            held.finish(&answer);
            answer
        };
        tokio::time::timeout(PATIENCE, follow).await.unwrap_or_else(|_elapsed| Err(Error::Sql(silent())))
    }

    pub(super) async fn wakeups(&self) -> Result<Wakeups> {
        Box::pin(Wakeups::open(self.sessions.listening())).await
    }

    pub(super) fn in_use(&self) -> u32 {
        self.pool.size().saturating_sub(u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX))
    }

    pub(super) fn most_connections(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// The pool only: the store's tasks have ended by then.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// One run of one transaction.
async fn transact<T, F>(pool: &PgPool, sessions: &Sessions, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    let mut held = begin(pool, sessions).await?;
    let answer = run(held.connection(), sessions, name, work).await;
    match answer {
        Ok(value) => {
            // SELECT fails in a transaction that an error has aborted already. COMMIT alone would roll such a one back and call it a success.
            match limited(held.connection().execute("SELECT 1; COMMIT")).await {
                Ok(_) => {
                    held.release();
                    Ok(value)
                }
                // Dropping the connection ends its transaction, if it has one left.
                Err(error) if connection_lost(&error) => Err(Error::CommitUnknown(error)),
                Err(error) => Err(Error::Sql(error)),
            }
        }
        Err(error) => {
            if !error.is_connection_lost() && !matches!(error, Error::Panicked(_)) {
                held.roll_back().await;
            }
            Err(error)
        }
    }
}

/// One run of what only reads: each query by itself, or, behind a pooler, all in one session.
async fn read_once<T, F>(pool: &PgPool, sessions: &Sessions, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    if sessions.is_pooled() {
        let mut held = begin(pool, sessions).await?;
        let answer = run(held.connection(), sessions, name, work).await;
        if !matches!(&answer, Err(error) if error.is_connection_lost() || matches!(error, Error::Panicked(_))) {
            held.roll_back().await;
        }
        return answer;
    }
    let mut held = Held(Some(pool.acquire().await?));
    let answer = run(held.connection(), sessions, name, work).await;
    held.finish(&answer);
    answer
}

/// Begins on a connection that works. After a restart of the server every pooled connection is dead, and nothing is lost by trying the next one.
async fn begin(pool: &PgPool, sessions: &Sessions) -> Result<Held> {
    let begin = async {
        let mut dead = 0;
        loop {
            let mut held = Held(Some(pool.acquire().await?));
            match held.connection().execute(sessions.begin()).await {
                Ok(_) => return Ok(held),
                Err(error) if connection_lost(&error) && dead < pool.options().get_max_connections() => dead += 1,
                Err(error) => return Err(Error::Sql(error)),
            }
        }
    };
    tokio::time::timeout(PATIENCE, begin).await.unwrap_or_else(|_elapsed| Err(Error::Sql(silent())))
}

async fn run<T, F>(connection: &mut PgConnection, sessions: &Sessions, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    let mut tx = Tx::Postgres(connection, sessions.statements());
    let caught = AssertUnwindSafe(async { work(&mut tx).await }).catch_unwind();
    match tokio::time::timeout(SILENCE, caught).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => Err(Error::Panicked(name)),
        Err(_elapsed) => Err(Error::Sql(silent())),
    }
}

async fn lives(connection: &mut PgConnection) -> bool {
    matches!(tokio::time::timeout(PING, connection.ping()).await, Ok(Ok(())))
}

async fn limited<T>(statement: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    tokio::time::timeout(SILENCE, statement).await.unwrap_or_else(|_| Err(silent()))
}

fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the server answered nothing"))
}

/// A connection that goes back to the pool only when it is known to be clean; otherwise it is hung up, and the server rolls back.
struct Held(Option<PoolConnection<sqlx::Postgres>>);

impl Held {
    fn connection(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("held until it is released or dropped")
    }

    fn release(mut self) {
        drop(self.0.take());
    }

    /// Undoes what the transaction did; a connection on which even that fails is hung up, which has the same effect.
    async fn roll_back(mut self) {
        if limited(self.connection().execute("ROLLBACK")).await.is_ok() {
            self.release();
        }
    }

    /// After reads there is nothing to roll back; only a connection that broke, or was left in the middle, is hung up.
    fn finish<T>(self, answer: &Result<T>) {
        if !matches!(answer, Err(error) if error.is_connection_lost() || matches!(error, Error::Panicked(_))) {
            self.release();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
