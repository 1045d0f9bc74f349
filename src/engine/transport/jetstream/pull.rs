//! Asking for messages: one inbox, which the client takes along over every reconnect, and never more asked for than there were permits when it was asked.
//!
//! What has been asked for and what has come is kept here, not in the future that waits for it, so that dropping the future loses nothing. Messages that come
//! while nobody waits lie here until the next call; if that takes longer than the acknowledgement's wait, NATS delivers them elsewhere as well, and whoever
//! claims the task first has it.

use super::link::{Link, Up};
use crate::base::clock::Monotonic;
use async_nats::{
    StatusCode, Subject, Subscriber,
    jetstream::{Message, consumer::pull::BatchConfig},
};
use futures::{FutureExt as _, StreamExt as _};
use std::{sync::Arc, time::Duration};

/// For how long NATS keeps a request that it has no message for.
const REQUEST: Duration = Duration::from_secs(5);
/// A request that NATS says nothing about for longer than this is not known there any more.
const SILENCE: Duration = Duration::from_secs(7);

/// One inbox.
pub(super) struct Pull {
    of: Arc<Up>,
    inbox: Subject,
    subscriber: Subscriber,
    /// Asked for and not there yet.
    open: usize,
    until: Monotonic,
}

/// What the inbox said.
pub(super) enum Said {
    Message(Message),
    /// The request is over; NATS has nothing.
    Nothing,
    /// Something is wrong with the consumer.
    Wrong(String),
    /// There will be no more in this inbox.
    Closed,
}

impl Pull {
    pub(super) async fn begin(link: &Link, up: Arc<Up>) -> Result<Self, String> {
        let inbox = Subject::from(link.client.new_inbox());
        let subscriber = link.client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
        Ok(Self { of: up, inbox, subscriber, open: 0, until: link.clock.monotonic() })
    }

    /// After a look at the link NATS may not know the open request any more: it is made again, in the same inbox, so that nothing on its way is missed.
    pub(super) fn follow(&mut self, up: &Arc<Up>) {
        if !Arc::ptr_eq(&self.of, up) {
            self.of = Arc::clone(up);
            self.open = 0;
        }
    }

    /// Asks for `limit` messages unless a request is open.
    pub(super) async fn ask(&mut self, link: &Link, limit: usize) -> Result<(), String> {
        if self.open > 0 && link.clock.monotonic() < self.until {
            return Ok(());
        }
        let batch = BatchConfig { batch: limit, expires: Some(REQUEST), ..BatchConfig::default() };
        self.of.consumer.request_batch(batch, self.inbox.clone()).await.map_err(|error| error.to_string())?;
        (self.open, self.until) = (limit, link.clock.monotonic() + SILENCE);
        Ok(())
    }

    /// The next word about what was asked for; waits for it. Dropped, it has taken nothing.
    pub(super) async fn next(&mut self, link: &Link) -> Said {
        tokio::select! {
            biased;
            message = self.subscriber.next() => self.read(link, message),
            () = link.clock.sleep_until(self.until) => {
                self.open = 0;
                Said::Nothing
            }
        }
    }

    /// A message that has come already.
    pub(super) fn come(&mut self, link: &Link) -> Option<Message> {
        loop {
            let next = self.subscriber.next().now_or_never()?;
            if let Said::Message(message) = self.read(link, next) {
                return Some(message);
            }
            // A status; if it is a bad one the next request meets it again.
            if self.open == 0 {
                return None;
            }
        }
    }

    fn read(&mut self, link: &Link, message: Option<async_nats::Message>) -> Said {
        let Some(message) = message else {
            self.open = 0;
            return Said::Closed;
        };
        match message.status.unwrap_or(StatusCode::OK) {
            StatusCode::OK => {
                self.open = self.open.saturating_sub(1);
                Said::Message(Message { message, context: link.context.clone() })
            }
            StatusCode::TIMEOUT | StatusCode::NOT_FOUND => {
                self.open = 0;
                Said::Nothing
            }
            StatusCode::IDLE_HEARTBEAT => Said::Nothing,
            status => {
                self.open = 0;
                Said::Wrong(format!("{status} {}", message.description.unwrap_or_default()))
            }
        }
    }

    /// Nothing more is wanted; what has come is handed out.
    pub(super) async fn end(mut self) -> Vec<async_nats::Message> {
        let _ = self.subscriber.unsubscribe().await;
        let mut left = Vec::new();
        while let Some(Some(message)) = self.subscriber.next().now_or_never() {
            if message.status.is_none_or(|status| status == StatusCode::OK) {
                left.push(message);
            }
        }
        left
    }
}
