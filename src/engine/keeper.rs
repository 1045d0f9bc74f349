//! The lease keeper: renews all leases of the process in one statement every heartbeat.
//!
//! It must be late for no reason that is not the database's: on PostgreSQL it has an OS thread, a runtime and a connection of its own; on SQLite it goes to the
//! head of the writer's queue. How long a lease surely lasts is counted from *before* the renewal was sent. An error is tried again until the lease has run
//! out; then the attempt's own watch stops it, so a keeper that hangs or dies leaves nobody running without a lease.

use super::{core::Core, outage::Outage};
use crate::{
    domain::time::Timestamp,
    store::{self, Db, task},
};
use futures::FutureExt as _;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the database did not answer within a heartbeat")]
    TimedOut,
}

pub(super) struct Keeper {
    core: Arc<Core>,
    db: Db,
    urgent: bool,
}

impl Keeper {
    /// A keeper on the service's own store.
    pub(super) fn shared(core: Arc<Core>) -> Self {
        let db = core.db.clone();
        Self { core, db, urgent: true }
    }

    /// Runs a keeper on its own thread, runtime and connection until the process ends.
    pub(super) async fn run_apart(core: Arc<Core>, options: store::db::Options) {
        let (ended, end) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("lease-keeper".to_owned()).spawn(move || {
            let _ended = ended;
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(Self::open_and_run(core, options)),
                Err(error) => panic!("the lease keeper's runtime cannot be made: {error}"),
            }
        });
        match thread {
            Ok(thread) => {
                // An error means that the sender is gone: the thread has ended, well or by a panic, which joining tells.
                let _ = end.await;
                assert!(thread.join().is_ok(), "the lease keeper's thread panicked");
            }
            Err(error) => panic!("the lease keeper's thread cannot be started: {error}"),
        }
    }

    async fn open_and_run(core: Arc<Core>, options: store::db::Options) {
        let mut outage = Outage::default();
        let db = loop {
            match Db::open(options.clone()).await {
                Ok(db) => break db,
                Err(error) => {
                    let wait = outage.note(&core, "lease keeper", &error);
                    tokio::select! {
                        () = core.clock.sleep(wait) => {}
                        () = core.shutdown.hard().cancelled() => return,
                    }
                }
            }
        };
        Self { core, db: db.clone(), urgent: false }.run().await;
        db.close().await;
    }

    /// Renews until the process drains and nothing runs any more.
    pub(super) async fn run(self) {
        let Self { core, .. } = &self;
        let mut outage = Outage::default();
        let mut next = core.clock.monotonic() + core.config.heartbeat;
        loop {
            tokio::select! {
                () = core.clock.sleep_until(next) => {}
                () = core.shutdown.hard().cancelled() => return,
                // While attempts use their grace their leases are renewed; the loop looks again soon whether they are done.
                () = core.shutdown.soft().cancelled() => {
                    if core.leases.is_empty() {
                        return;
                    }
                    core.clock.sleep_until(next.min(core.clock.monotonic() + Duration::from_millis(50))).await;
                    if core.clock.monotonic() < next {
                        continue;
                    }
                }
            }
            let started = core.clock.monotonic();
            next = match self.tick().await {
                Ok(()) => {
                    outage.over();
                    started + core.config.heartbeat
                }
                Err(error) => {
                    let wait = outage.note(core, "renewing leases", &error);
                    core.clock.monotonic() + wait.min(core.config.heartbeat)
                }
            };
        }
    }

    /// Renews every lease of the process once.
    ///
    /// # Errors
    /// When the database did not take it within a heartbeat; the leases are as they were.
    pub(super) async fn tick(&self) -> Result<(), Error> {
        let asked = self.core.leases.all();
        if asked.is_empty() {
            return Ok(());
        }
        let sent = self.core.clock.monotonic();
        let until: Timestamp = self.core.clock.now() + self.core.config.lease;
        let leases: Arc<[_]> = asked.clone().into();
        let work = store::work(move |tx| {
            let leases = Arc::clone(&leases);
            async move { task::renew(tx, &leases, until).await }.boxed()
        });
        let renewal = async {
            if self.urgent { self.db.urgent("renew_leases", work).await } else { self.db.transaction("renew_leases", work).await }
        };
        let renewed = tokio::select! {
            renewed = renewal => renewed?,
            // A renewal that hangs is tried again on a fresh connection; should it get through later, it did no harm.
            () = self.core.clock.sleep(self.core.config.heartbeat) => return Err(Error::TimedOut),
        };
        self.core.leases.renewed(&asked, &renewed, sent + self.core.config.lease);
        Ok(())
    }
}
