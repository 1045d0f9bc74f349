//! How sessions on PostgreSQL are opened, and what settings they carry: one that hangs gives its locks back.
//!
//! A connection pooler in transaction mode (PgBouncer) gives every transaction another session. Limits of the session, prepared statements, LISTEN and advisory
//! locks get lost on that way, quietly. It shows when the limits are asked for and not there; then each transaction brings its limits along, no statement is
//! given a name, and what needs a session of its own takes the direct way, `database.listen_url`. Without that the start is refused.

use super::{Error, Result, Sql, db::Options, statements::Statements};
use sqlx::{
    Connection as _, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgDatabaseError, PgListener, PgPoolOptions},
};
use std::{str::FromStr as _, time::Duration};

/// How long to wait for a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

const SETTINGS: [(&str, &str); 5] = [
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("statement_timeout", "30s"),
    ("tcp_user_timeout", "15s"),
    // What is worked on lies in memory: a hundred rows are looked up by their ids rather than by reading the table.
    ("random_page_cost", "1.1"),
];
/// A migration may take, and wait for another's, as long as it needs.
const MIGRATION: [(&str, &str); 2] = [("tcp_user_timeout", "15s"), ("client_min_messages", "warning")];
/// A hint is worth no fsync.
const LISTENING: (&str, &str) = ("synchronous_commit", "off");

pub(super) const BEGIN: &str = "BEGIN";
/// What [`SETTINGS`] says for one transaction; those of the TCP connection are the pooler's own.
pub(super) const BEGIN_LIMITED: &str = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; \
     SET LOCAL statement_timeout = '30s'; SET LOCAL random_page_cost = 1.1";

const HAS_LIMITS: Sql = Sql::each("SELECT NULL", "SELECT current_setting('lock_timeout') = '5s'");

pub const ALL: &[(&str, Sql)] = &[("sessions::has_limits", HAS_LIMITS)];

/// The ways to the database.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    /// For transactions.
    main: PgConnectOptions,
    /// For what needs a session: never through a pooler.
    direct: PgConnectOptions,
    pooled: bool,
}

impl Sessions {
    /// Finds out what kind of way the configured one is.
    pub(super) async fn find_out(options: &Options) -> Result<Self> {
        let main = parse(&options.url)?;
        let listen_url = options.listen_url.as_deref().filter(|url| !url.is_empty());
        let direct = listen_url.map_or_else(|| Ok(main.clone()), parse)?;
        let pooled = !keeps_limits(&main).await?;
        if pooled && listen_url.is_none() {
            return Err(Error::Unusable(
                "database.url goes through a connection pooler (such as PgBouncer), which loses LISTEN and advisory locks: \
                 set database.listen_url to the PostgreSQL server itself"
                    .to_owned(),
            ));
        }
        if listen_url.is_some() && !keeps_limits(&direct).await? {
            return Err(Error::Unusable(
                "database.listen_url goes through a connection pooler (such as PgBouncer), too: it has to be the PostgreSQL server itself"
                    .to_owned(),
            ));
        }
        Ok(Self { main, direct, pooled })
    }

    /// For the pool of transactions.
    pub(super) fn main(&self) -> PgConnectOptions {
        if self.pooled {
            // A pooler refuses parameters that it does not know; what is prepared in one session is not there in the next.
            self.main.clone().extra_float_digits(None).statement_cache_capacity(0)
        } else {
            self.main.clone().options(SETTINGS)
        }
    }

    pub(super) fn begin(&self) -> &'static str {
        if self.pooled { BEGIN_LIMITED } else { BEGIN }
    }

    /// Whether statements may be given names, under which they are found again.
    pub(super) fn statements(&self) -> Statements {
        if self.pooled { Statements::Unnamed } else { Statements::Named }
    }

    pub(super) fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// A session without limits of time, for migrations.
    pub(super) async fn migrating(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.direct.clone().options(MIGRATION)).await?)
    }

    /// A session that listens.
    pub(super) async fn listening(&self) -> Result<PgListener> {
        // A pool of one, because that is what a listener is made from; a new one each time, because an old one may be waiting for a connection that is dead.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(CONNECT)
            .connect_lazy_with(self.direct.clone().application_name("protocol-bridge listener").options(SETTINGS).options([LISTENING]));
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.ignore_pool_close_event(true);
        // Whoever lost the connection wants to know it.
        listener.eager_reconnect(false);
        Ok(listener)
    }
}

fn parse(url: &str) -> Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name("protocol-bridge"))
}

/// Whether a session opened this way has the limits it was opened with.
async fn keeps_limits(options: &PgConnectOptions) -> Result<bool> {
    match PgConnection::connect_with(&options.clone().options(SETTINGS)).await {
        Ok(mut connection) => {
            let row = sqlx::raw_sql(HAS_LIMITS.postgres).fetch_one(&mut connection).await?;
            let has_limits = row.try_get(0)?;
            // What was wanted is known; how the goodbye goes changes nothing.
            let _ = connection.close().await;
            Ok(has_limits)
        }
        // PgBouncer says "unsupported startup parameter" as a protocol violation; PostgreSQL itself knows all of them.
        Err(sqlx::Error::Database(error))
            if error.try_downcast_ref::<PgDatabaseError>().is_some_and(|error| error.code() == "08P01")
                && error.message().contains("startup parameter") =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
