//! Who is told about an event: one delivery for each sink, made in the transaction that gives the event its position. So an event is known to everyone or to nobody
//! yet, and a subscription hears of what ends after it was made.

use super::Telling;
use crate::{
    base::entropy::Entropy,
    domain::{delivery::Sink, ids::TaskId, time::Timestamp},
    store::{
        self, Tx, callback,
        delivery::{self, NewDelivery},
        event::{self, Event},
        subscription,
    },
};
use std::time::Duration;

/// What deliveries are made with; cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::engine) struct FanOut {
    /// Ids are not part of what must come out the same when the transaction is repeated, so they may be made inside.
    entropy: Entropy,
    to_jetstream: bool,
    first_wait: Duration,
}

impl FanOut {
    pub(in crate::engine) fn new(entropy: Entropy, telling: &Telling) -> Self {
        let first_wait = telling.config.schedule.first().copied().unwrap_or_default();
        Self { entropy, to_jetstream: telling.stream.is_some(), first_wait }
    }

    /// Makes the deliveries of events that are being placed at `now`.
    pub(super) async fn deliver(&self, tx: &mut Tx<'_>, events: &[Event], now: Timestamp) -> store::Result<()> {
        let subscriptions = subscription::list(tx).await?;
        let tasks: Vec<TaskId> = events.iter().map(|event| event.task_id).collect();
        let callbacks = callback::of_tasks(tx, &tasks).await?;
        let mut deliveries = Vec::new();
        for event in events {
            if self.to_jetstream {
                deliveries.push(self.one(event, Sink::JetStream, now));
            }
            // What ended before somebody subscribed is not theirs.
            let subscribed = subscriptions.iter().filter(|one| one.wants(event.event_type) && one.created_at <= event.at);
            deliveries.extend(subscribed.map(|one| self.one(event, Sink::Subscription(one.id), now)));
            let own = callbacks.iter().filter(|(task, _)| *task == event.task_id);
            deliveries.extend(own.map(|(_, url)| self.one(event, Sink::Callback(url.clone()), now)));
        }
        if deliveries.is_empty() { Ok(()) } else { delivery::insert(tx, &deliveries).await }
    }

    /// A callback that was named when its task had perhaps ended: told of the task's newest event, unless that is still to be placed and finds it by itself.
    pub(in crate::engine) async fn late_callback(&self, tx: &mut Tx<'_>, task: TaskId, url: &str, now: Timestamp) -> store::Result<bool> {
        // Whoever places events at this moment is waited for: it may have looked for callbacks before this one was there.
        event::wait_for_counter(tx).await?;
        let Some(event) = event::newest_placed(tx, task).await? else { return Ok(false) };
        delivery::insert(tx, &[self.one(&event, Sink::Callback(url.to_owned()), now)]).await?;
        Ok(true)
    }

    fn one(&self, event: &Event, sink: Sink, now: Timestamp) -> NewDelivery {
        let lane = lane(&sink);
        NewDelivery { id: self.entropy.id(now), event_id: event.id, sink, lane, first_try_at: now + self.first_wait, at: now }
    }
}

/// Which deliveries share a receiver: a subscription's own, and callbacks to one origin, whatever their paths.
pub(super) fn lane(sink: &Sink) -> String {
    match sink {
        Sink::Callback(url) => reqwest::Url::parse(url).map_or_else(|_| url.clone(), |url| url.origin().ascii_serialization()),
        sink => sink.to_string(),
    }
}
