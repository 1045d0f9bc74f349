//! The feed: new events as they get their positions, read once in this process for everyone who follows.
//!
//! Hints make it quick; a poll stands behind them. Who falls too far behind, or comes later, reads the table ([`super::Follower`]), so that memory is bounded
//! and a crash loses nothing but connections.

use crate::{
    engine::{core::Core, outage::Outage},
    store::{
        self,
        event::{self, Event},
    },
};
use futures::FutureExt as _;
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{Notify, broadcast};

const POLL: Duration = Duration::from_secs(1);
const PAGE: usize = 200;
/// So many events are kept for the slowest follower; a body is some kilobytes.
const KEPT: usize = 256;

/// Where events are passed on; cheap to clone.
#[derive(Clone)]
pub(in crate::engine) struct Feed(Arc<Inner>);

struct Inner {
    events: broadcast::Sender<Arc<Event>>,
    ended: Notify,
    look: Notify,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("followers", &self.0.events.receiver_count()).finish()
    }
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(Inner { events: broadcast::Sender::new(KEPT), ended: Notify::new(), look: Notify::new() }))
    }
}

impl Feed {
    /// A task has ended, so there may be an event without a position. After the commit.
    pub(in crate::engine) fn task_ended(&self) {
        self.0.ended.notify_one();
    }

    /// Returns when a task has ended.
    pub(super) async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// There may be new events with a position, placed here or by another process.
    pub(in crate::engine) fn look(&self) {
        self.0.look.notify_one();
    }

    /// Everything that is passed on from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.0.events.subscribe()
    }

    /// Reads what is new and passes it on, until the process drains.
    pub(in crate::engine) async fn run(core: Arc<Core>) {
        let feed = core.feed.clone();
        let mut known = None;
        let mut outage = Outage::default();
        loop {
            let wait = match feed.tick(&core, &mut known).await {
                Ok(full) => {
                    outage.over();
                    if full { Duration::ZERO } else { core.jittered(POLL, 0.2) }
                }
                Err(error) => outage.note(&core, "event feed", &error),
            };
            tokio::select! {
                () = feed.0.look.notified() => {}
                () = core.clock.sleep(wait) => {}
                () = core.shutdown.soft().cancelled() => return,
            }
        }
    }

    /// One look; whether there may be more.
    async fn tick(&self, core: &Core, known: &mut Option<i64>) -> store::Result<bool> {
        let Some(position) = *known else {
            let work = store::work(|tx| event::last_position(tx).boxed());
            *known = Some(core.db.read("events", work).await?);
            return Ok(false);
        };
        let work = store::work(move |tx| async move { event::after(tx, position, None, PAGE).await }.boxed());
        let page = core.db.read("events", work).await?;
        let full = page.len() == PAGE;
        for event in page {
            *known = event.position.max(*known);
            // Nobody follows: nobody needs it.
            let _ = self.0.events.send(Arc::new(event));
        }
        Ok(full)
    }
}
