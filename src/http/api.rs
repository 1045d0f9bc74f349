//! What every handler can reach.

use super::{Problem, RequestProblem, routes::readyz::LastAnswer};
use crate::bridge::Bridge; // goes with v1
use crate::{
    base::{
        clock::{Clock, Monotonic},
        config::Config,
        entropy::Entropy,
        shutdown::Shutdown,
    },
    callers::{Callers, Identity, Ledger, RateLimit},
    domain::{audit::Author, ids::RequestId},
    engine::{Engine, Overload},
    generator::Generator,
    store::{self, Db},
};
use metrics_exporter_prometheus::PrometheusHandle;
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// A database that is away is answered within 5 s; this leaves time to say so.
const STORE_PATIENCE: Duration = Duration::from_millis(4500);

/// The state of all routes; cheap to clone.
#[derive(Clone)]
pub struct Api {
    pub config: Arc<Config>,
    pub engine: Engine,
    pub generator: Generator,
    pub bridge: Bridge, // goes with v1
    pub callers: Callers,
    pub rate_limit: RateLimit,
    pub ledger: Ledger,
    pub db: Db,
    pub clock: Clock,
    pub entropy: Entropy,
    pub metrics: PrometheusHandle,
    /// When the database answered last, for `/readyz`.
    pub database: LastAnswer,
    /// Cancelled at the signal to end: `/readyz` is red and every answer says `Connection: close`, but everything is still served until `shutdown` is soft.
    pub draining: CancellationToken,
    pub shutdown: Shutdown,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("config", &self.config).field("callers", &self.callers).finish_non_exhaustive()
    }
}

impl Api {
    /// Runs `work` on the store, answering `unavailable` when it takes longer than a client is to wait for a database that is away. The work itself is not
    /// stopped: a transaction runs to its end on the store's own task.
    ///
    /// # Errors
    /// A problem when the store failed or did not answer in time.
    pub async fn within_patience<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Problem>
    where
        Problem: From<E>,
    {
        tokio::select! {
            done = work => done.map_err(Problem::from),
            () = self.clock.sleep_until(self.patience()) => Err(Problem::unavailable()),
        }
    }

    fn patience(&self) -> Monotonic {
        self.clock.monotonic() + STORE_PATIENCE
    }

    /// Who asks for a change, for the audit log.
    #[must_use]
    pub fn author(identity: &Identity, request_id: RequestId) -> Author {
        Author { name: identity.caller.name.clone(), address: identity.address.to_string(), request_id }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if error.is_disk_full() {
            Self::overloaded(Overload::Disk).because(error)
        } else if error.is_unavailable() {
            Self::unavailable().because(error)
        } else {
            Self::internal(error)
        }
    }
}

impl Problem {
    /// Nothing new for now; asking again is safe.
    #[must_use]
    pub fn overloaded(why: Overload) -> Self {
        Self::request(RequestProblem::Overloaded, why.to_string()).retry_after(5)
    }

    /// The database is away; asking again is safe.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::request(RequestProblem::Unavailable, "The database does not answer. Nothing is lost; ask again.").retry_after(5)
    }
}
