//! Somebody who follows events: first those in the table after the place where it left off, then new ones as they come.
//!
//! It subscribes to the feed before it reads the table, so nothing falls in between; what comes by both ways is told once, because positions only grow. When
//! it falls too far behind the feed it reads the table again.

use super::Feed;
use crate::{
    base::clock::Clock,
    domain::{event::EventType, ids::AgendaId},
    store::{
        self, Db,
        event::{self, Event},
    },
};
use futures::FutureExt as _;
use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};
use tokio::sync::broadcast::{Receiver, error::RecvError};

const PAGE: usize = 100;
/// Between two tries to read a database that is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is followed.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// After this position; `None`: only what is new. A position that was never given (the database is another one) means everything that is kept.
    pub after: Option<i64>,
    pub agenda: Option<AgendaId>,
    /// Only these; empty: all.
    pub types: Vec<EventType>,
}

/// Follows; see the module.
pub struct Follower {
    db: Db,
    clock: Clock,
    follow: Follow,
    position: i64,
    new: Receiver<Arc<Event>>,
    page: VecDeque<Event>,
    /// All that was in the table has been told.
    live: bool,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("follow", &self.follow).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Follower {
    pub(in crate::engine) async fn begin(db: Db, clock: Clock, feed: &Feed, follow: Follow) -> store::Result<Self> {
        let new = feed.subscribe();
        let work = store::work(|tx| event::last_position(tx).boxed());
        let last = db.read("events", work).await?;
        let position = follow.after.map_or(last, |after| if after > last { 0 } else { after });
        let live = position == last;
        Ok(Self { db, clock, follow, position, new, page: VecDeque::new(), live })
    }

    /// The position up to which everything has been told.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The next event; `None`: the process ends. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            let event = if let Some(event) = self.page.pop_front() {
                Arc::new(event)
            } else if self.live {
                match self.new.recv().await {
                    Ok(event) => event,
                    Err(RecvError::Lagged(_)) => {
                        self.live = false;
                        continue;
                    }
                    Err(RecvError::Closed) => return None,
                }
            } else {
                self.read().await;
                continue;
            };
            let position = event.position.unwrap_or(0);
            if position > self.position {
                self.position = position;
                if self.wants(&event) {
                    return Some(event);
                }
            }
        }
    }

    fn wants(&self, event: &Event) -> bool {
        let Follow { agenda, types, .. } = &self.follow;
        agenda.as_ref().is_none_or(|agenda| *agenda == event.agenda_id) && (types.is_empty() || types.contains(&event.event_type))
    }

    async fn read(&mut self) {
        let (position, agenda) = (self.position, self.follow.agenda.clone());
        let work = store::work(move |tx| {
            let agenda = agenda.clone();
            async move { event::after(tx, position, agenda.as_ref(), PAGE).await }.boxed()
        });
        match self.db.read("events", work).await {
            Ok(page) => {
                self.live = page.len() < PAGE;
                self.page = page.into();
            }
            Err(_) => self.clock.sleep(PATIENCE).await,
        }
    }
}
