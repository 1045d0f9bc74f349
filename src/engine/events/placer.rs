//! The placer: gives events their positions, and their deliveries, after they were committed; one replica at a time.
//!
//! Whoever holds the counter's row gives as many as wait; the others find it taken and come back. So positions have no gaps and become visible in their order, and
//! an event whose commit took long simply gets a later one. A crash before the commit leaves the events without a position, for the next tick anywhere.

use super::FanOut;
use crate::{
    domain::ids::EventId,
    engine::{core::Core, outage::Outage},
    store::{self, event},
};
use futures::FutureExt as _;
use std::{sync::Arc, time::Duration};

/// The poll that stands behind every hint.
const POLL: Duration = Duration::from_secs(1);
/// After giving positions it waits this long for company: an end that comes right behind shares the next commit with others.
const TOGETHER: Duration = Duration::from_millis(5);
const BATCH: usize = 500;

pub(in crate::engine) struct Placer {
    core: Arc<Core>,
    fan_out: FanOut,
}

impl Placer {
    pub(in crate::engine) fn new(core: Arc<Core>) -> Self {
        let fan_out = FanOut::new(core.entropy.clone(), &core.telling);
        Self { core, fan_out }
    }

    pub(in crate::engine) async fn run(self) {
        let core = &self.core;
        let mut outage = Outage::default();
        loop {
            let wait = match self.tick().await {
                Ok(placed) => {
                    outage.over();
                    if placed > 0 { TOGETHER } else { core.jittered(POLL, 0.2) }
                }
                Err(error) => outage.note(core, "event placer", &error),
            };
            let hinted = async {
                if wait > TOGETHER {
                    core.feed.ended().await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = hinted => {}
                () = core.clock.sleep(wait) => {}
                () = core.shutdown.hard().cancelled() => return,
                () = core.drained() => {
                    // The last attempts' ends; if it does not work, whoever starts next does it.
                    let _ = self.tick().await;
                    return;
                }
            }
        }
    }

    /// Places what waits, as much as one commit takes; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub(in crate::engine) async fn tick(&self) -> store::Result<usize> {
        let core = &self.core;
        let look = store::work(|tx| event::any_unplaced(tx).boxed());
        if !core.db.read("events", look).await? {
            return Ok(0);
        }
        let (fan_out, now) = (self.fan_out.clone(), core.clock.now());
        let work = store::work(move |tx| {
            let fan_out = fan_out.clone();
            async move {
                // The counter first: what is read before it is held may be placed by others meanwhile.
                let Some(last) = event::lock_counter(tx).await? else { return Ok(0) };
                let events = event::unplaced(tx, BATCH).await?;
                let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
                event::place(tx, &ids, last).await?;
                fan_out.deliver(tx, &events, now).await?;
                Ok(ids.len())
            }
            .boxed()
        });
        let placed = core.db.transaction("place_events", work).await?;
        if placed > 0 {
            core.feed.look();
            core.others.changed();
            core.deliver.notify_one();
        }
        Ok(placed)
    }
}
