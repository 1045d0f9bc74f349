//! The engine by hand: every loop's tick, for tests and simulations that call them in an order of their own over a clock of their own.

use super::{
    consumer::Consumer,
    core::{Core, Parts},
    events::{Courier, Placer},
    facade::Engine,
    gauges::Gauges,
    janitor::Janitor,
    keeper::{self, Keeper},
    relay::Relay,
    rescuer::Rescuer,
    timekeeper::Timekeeper,
};
use crate::{
    base::{clock::Followed, shutdown::Shutdown},
    store,
};
use std::{fmt, sync::Arc};

/// The ticks of one engine.
pub struct Ticks {
    core: Arc<Core>,
    relay: Relay,
    consumer: Consumer,
    keeper: Keeper,
    rescuer: Rescuer,
    timekeeper: Timekeeper,
    gauges: Gauges,
    janitor: Janitor,
    placer: Placer,
    courier: Courier,
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticks").field("worker_id", &self.core.worker_id).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine whose loops do not run: nothing happens but through the ticks. Attempts that a tick starts run in the background, as always.
    #[must_use]
    pub fn by_hand(parts: Parts, shutdown: &Shutdown) -> (Self, Ticks) {
        let (engine, core, handed) = Self::at_rest(parts, shutdown);
        let ticks = Ticks {
            relay: Relay::new(Arc::clone(&core), handed),
            consumer: Consumer::new(Arc::clone(&core)),
            keeper: Keeper::shared(Arc::clone(&core)),
            rescuer: Rescuer::new(Arc::clone(&core)),
            timekeeper: Timekeeper::new(Arc::clone(&core)),
            gauges: Gauges::new(Arc::clone(&core)),
            janitor: Janitor::new(Arc::clone(&core)),
            placer: Placer::new(Arc::clone(&core)),
            courier: Courier::new(Arc::clone(&core)).expect("a client without anything special can be built once TLS is there"),
            core,
        };
        (engine, ticks)
    }
}

impl Ticks {
    /// The relay sends what is due: rows handed over and rows in the table; answers how many it claimed in the table.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn relay(&self) -> store::Result<usize> {
        self.relay.send_handed().await;
        Ok(self.relay.tick().await?.claimed)
    }

    /// What was sent is marked.
    pub async fn mark(&self) {
        self.relay.mark_tick().await;
    }

    /// Messages that have arrived are taken, as far as there are permits; answers how many tasks began.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn consume(&self) -> store::Result<usize> {
        self.consumer.message_tick().await
    }

    /// Due tasks are taken straight from the table, as far as there are permits; answers how many began.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn claim_due(&self) -> store::Result<usize> {
        self.consumer.tick().await
    }

    /// All leases of this engine are renewed.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn renew(&self) -> Result<(), keeper::Error> {
        self.keeper.tick().await
    }

    /// Tasks whose lease ran out are taken back; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn rescue(&self) -> store::Result<usize> {
        self.rescuer.tick().await
    }

    /// The completion hub looks at everything that is waited for.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn look(&self) -> store::Result<()> {
        self.core.hub.tick().await
    }

    /// Events that wait get their positions; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn place(&self) -> store::Result<usize> {
        self.placer.tick().await
    }

    /// Deliveries that are due are tried, and how they went is noted once they have ended; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn deliver(&self) -> store::Result<usize> {
        let begun = self.courier.tick().await?;
        while self.courier.running() > 0 {
            tokio::task::yield_now().await;
        }
        self.courier.note_tick().await;
        Ok(begun)
    }

    /// What is older than its retention is deleted; answers how many rows.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn clean(&self) -> store::Result<u64> {
        self.janitor.tick().await
    }

    /// The clock follows the database's, if that has one of its own.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn measure_time(&self) -> store::Result<Followed> {
        self.timekeeper.tick().await
    }

    /// The gauges are set.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn count(&self) -> store::Result<()> {
        self.gauges.tick(true).await
    }

    /// How many attempts run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.core.leases.all().len()
    }
}
