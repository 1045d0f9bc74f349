//! PostgreSQL: a pool; each transaction on a task of its own, repeated when it lost to another one.
//!
//! Sessions carry limits, so that one that hangs gives its locks back. The client has one more of its own, for a server that vanished without a word.

use super::{
    Error, Result, Tx, database_time,
    db::Options,
    error::connection_lost,
    measure::Measure,
    migrate,
    repeat::{self, pause},
    tasks::Tasks,
};
use crate::base::{
    clock::{Clock, Followed},
    entropy::Entropy,
};
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{
    Connection as _, Executor as _, PgConnection, PgPool,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{future::Future, io, panic::AssertUnwindSafe, str::FromStr as _, time::Duration};

/// How long to wait for a connection, a new one or one of the pool.
const ACQUIRE: Duration = Duration::from_secs(5);
/// A connection that lay idle longer is tried before it is used; a busier one would have shown its break.
const TRUST_IDLE: Duration = Duration::from_secs(1);
/// By how much this machine's clock may differ from the database's before somebody is told.
const CLOCK_OFF: Duration = Duration::from_secs(1);
/// Longer than any session limit below: reached only when the server answers nothing at all.
const SILENCE: Duration = Duration::from_secs(40);
const SESSION: [(&str, &str); 4] =
    [("lock_timeout", "5s"), ("idle_in_transaction_session_timeout", "10s"), ("statement_timeout", "30s"), ("tcp_user_timeout", "15s")];
/// A migration may take, and wait for another's, as long as it needs.
const MIGRATION_SESSION: [(&str, &str); 2] = [("tcp_user_timeout", "15s"), ("client_min_messages", "warning")];

#[derive(Debug)]
pub(super) struct Postgres {
    pool: PgPool,
    tasks: Tasks,
    entropy: Entropy,
}

impl Postgres {
    pub(super) async fn open(options: &Options, tasks: Tasks) -> Result<Self> {
        let connect = PgConnectOptions::from_str(&options.url)?.application_name("protocol-bridge");
        let mut connection = PgConnection::connect_with(&connect.clone().options(MIGRATION_SESSION)).await?;
        migrate::postgres(&mut connection, options.migrate).await?;
        if let Followed::Forward(by) | Followed::Back(by) = database_time::follow(&mut connection, &options.clock).await?
            && by >= CLOCK_OFF
        {
            tracing::warn!(off_by_s = by.as_secs_f64(), "this machine's clock is not the database's; the database's is what counts");
        }
        // What was wanted is done; how the goodbye goes changes nothing.
        let _ = connection.close().await;
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections.max(1))
            .acquire_timeout(ACQUIRE)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| Box::pin(async move { Ok(meta.idle_for <= TRUST_IDLE || connection.ping().await.is_ok()) }))
            .connect_lazy_with(connect.options(SESSION));
        Ok(Self { pool, tasks, entropy: options.entropy.clone() })
    }

    pub(super) async fn write<T, F>(&self, name: &'static str, work: F, measure: Measure) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        let (pool, entropy) = (self.pool.clone(), self.entropy.clone());
        let repeated = async move {
            let mut repeats = 0;
            let answer = loop {
                match transact(&pool, name, &work).await {
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
        let (pool, entropy) = (self.pool.clone(), self.entropy.clone());
        let repeated = async move {
            let (mut repeats, mut dead) = (0, 0);
            let answer = loop {
                let mut held = match pool.acquire().await {
                    Ok(connection) => Held(Some(connection)),
                    Err(error) => break Err(Error::Sql(error)),
                };
                let answer = run(held.connection(), name, &work).await;
                held.finish(&answer);
                match answer {
                    Err(error) if error.is_connection_lost() && dead < pool.options().get_max_connections() => dead += 1,
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

    pub(super) async fn follow_clock(&self, clock: &Clock) -> Result<Followed> {
        let mut held = Held(Some(self.pool.acquire().await?));
        let answer = match tokio::time::timeout(ACQUIRE, database_time::follow(held.connection(), clock)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(Error::Sql(silent())),
        };
        held.finish(&answer);
        answer
    }

    pub(super) fn in_use(&self) -> u32 {
        self.pool.size().saturating_sub(u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX))
    }

    /// The pool only: the store's tasks have ended by then.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// One run of one transaction.
async fn transact<T, F>(pool: &PgPool, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    let mut held = begin(pool).await?;
    let answer = run(held.connection(), name, work).await;
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
            if !error.is_connection_lost()
                && !matches!(error, Error::Panicked(_))
                && limited(held.connection().execute("ROLLBACK")).await.is_ok()
            {
                held.release();
            }
            Err(error)
        }
    }
}

/// Begins on a connection that works. After a restart of the server every pooled connection is dead, and nothing is lost by trying the next one.
async fn begin(pool: &PgPool) -> Result<Held> {
    let mut dead = 0;
    loop {
        let mut held = Held(Some(pool.acquire().await?));
        match limited(held.connection().execute("BEGIN")).await {
            Ok(_) => return Ok(held),
            Err(error) if connection_lost(&error) && dead < pool.options().get_max_connections() => dead += 1,
            Err(error) => return Err(Error::Sql(error)),
        }
    }
}

async fn run<T, F>(connection: &mut PgConnection, name: &'static str, work: &F) -> Result<T>
where
    F: for<'t> Fn(&'t mut Tx<'_>) -> BoxFuture<'t, Result<T>> + Send + Sync,
{
    let mut tx = Tx::Postgres(connection);
    let caught = AssertUnwindSafe(async { work(&mut tx).await }).catch_unwind();
    match tokio::time::timeout(SILENCE, caught).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => Err(Error::Panicked(name)),
        Err(_elapsed) => Err(Error::Sql(silent())),
    }
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
