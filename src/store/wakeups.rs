//! Hints between processes on PostgreSQL: LISTEN and NOTIFY on one session of our own.
//!
//! They carry nothing but "look now" and may be lost at any time; whoever gets them polls as well. Sent after the commit that they tell of, on a session that
//! no transaction waits for, because NOTIFY takes a lock that all who notify share. What this process sends does not come back to it.

use super::{Error, Result, Sql};
use sqlx::{Row as _, postgres::PgListener};
use std::{future::Future, io, time::Duration};

/// One text for any channels.
const NOTIFY: Sql = Sql::each("SELECT NULL", "SELECT pg_notify(channel, '') FROM unnest(CAST($1 AS TEXT[])) AS channel");
const PROCESS: Sql = Sql::each("SELECT NULL", "SELECT pg_backend_pid()");
const LISTENING: Sql = Sql::each("SELECT NULL", "SELECT COUNT(*) FROM pg_listening_channels()");

pub const ALL: &[(&str, Sql)] = &[("wakeups::notify", NOTIFY), ("wakeups::process", PROCESS), ("wakeups::listening", LISTENING)];

/// A connection that says nothing for this long, asked the simplest of questions, is dead.
const PATIENCE: Duration = Duration::from_secs(2);

/// What may have changed, as far as a hint says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Messages may be due earlier than thought.
    pub due: bool,
    /// Tasks that somebody may wait for have changed.
    pub changed: bool,
}

const DUE: &str = "protocol_bridge_due";
const CHANGED: &str = "protocol_bridge_changed";

impl Hints {
    pub const ALL: Self = Self { due: true, changed: true };

    #[must_use]
    pub fn any(self) -> bool {
        self.due || self.changed
    }

    /// These and `others`.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self { due: self.due || others.due, changed: self.changed || others.changed }
    }

    fn channels(self) -> Vec<&'static str> {
        [(self.due, DUE), (self.changed, CHANGED)].into_iter().filter_map(|(wanted, channel)| wanted.then_some(channel)).collect()
    }
}

/// The session; dropping it hangs up.
#[derive(Debug)]
pub struct Wakeups {
    listener: PgListener,
    /// The server's number for this session: what comes from it is our own.
    process: u32,
}

impl Wakeups {
    pub(super) async fn open(listener: impl Future<Output = Result<PgListener>>) -> Result<Self> {
        limited(async {
            let mut listener = listener.await?;
            listener.listen_all(Hints::ALL.channels()).await?;
            let row = sqlx::raw_sql(PROCESS.postgres).fetch_one(&mut listener).await?;
            let process: i32 = row.try_get(0)?;
            Ok(Self { listener, process: process.unsigned_abs() })
        })
        .await
    }

    /// Waits for hints of other processes. Cancel-safe.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn next(&mut self) -> Result<Hints> {
        loop {
            let Some(notification) = self.listener.try_recv().await? else { return Err(gone("it was closed")) };
            if notification.process_id() == self.process {
                continue;
            }
            let hints = Hints { due: notification.channel() == DUE, changed: notification.channel() == CHANGED };
            if hints.any() {
                return Ok(hints);
            }
        }
    }

    /// Tells the others.
    ///
    /// # Errors
    /// When the connection is gone, or says nothing.
    pub async fn send(&mut self, hints: Hints) -> Result<()> {
        let channels: Vec<String> = hints.channels().into_iter().map(str::to_owned).collect();
        limited(async { Ok(sqlx::query(NOTIFY.postgres).bind(channels).execute(&mut self.listener).await?) }).await?;
        Ok(())
    }

    /// Tries the connection: one that was cut without a word looks like one on which nothing happens.
    ///
    /// # Errors
    /// When the connection is gone, says nothing, or does not listen any more.
    pub async fn probe(&mut self) -> Result<()> {
        let count: i64 = limited(async {
            let row = sqlx::raw_sql(LISTENING.postgres).fetch_one(&mut self.listener).await?;
            Ok(row.try_get(0)?)
        })
        .await?;
        if usize::try_from(count) == Ok(Hints::ALL.channels().len()) { Ok(()) } else { Err(gone("its session does not listen any more")) }
    }
}

async fn limited<T>(question: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(|_| Err(gone("the server answered nothing")))
}

fn gone(why: &'static str) -> Error {
    Error::Sql(sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionAborted, why)))
}
