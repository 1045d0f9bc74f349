//! What is told to NATS about a message. None of it is waited for: an answer that is lost brings the message again, and the inbox drops it.

use super::super::Receipt;
use async_nats::jetstream::{AckKind, Message, message::Acker};
use futures::{FutureExt as _, future::BoxFuture};
use std::{fmt, time::Duration};

/// A message that cannot be looked at comes back after this at the latest.
const LATEST: Duration = Duration::from_secs(30);

pub(super) struct Reply {
    acker: Acker,
    /// How often the message has been delivered.
    deliveries: u32,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("deliveries", &self.deliveries).finish_non_exhaustive()
    }
}

impl Reply {
    /// The message's body, and where its fate is told.
    pub(super) fn of(message: Message) -> (bytes::Bytes, Self) {
        let deliveries = message.info().map_or(1, |info| u32::try_from(info.delivered).unwrap_or(u32::MAX));
        let (message, acker) = message.split();
        (message.payload, Self { acker, deliveries })
    }

    /// It will never be of use.
    pub(super) async fn end(&self) {
        self.tell(AckKind::Term).await;
    }

    async fn tell(&self, kind: AckKind) {
        if let Err(error) = self.acker.ack_with(kind).await {
            tracing::debug!(error, "NATS was not told about a message and will deliver it again");
        }
    }

    fn grown(&self, delay: Duration) -> Duration {
        delay.saturating_mul(2_u32.saturating_pow(self.deliveries.saturating_sub(1))).min(LATEST.max(delay))
    }
}

impl Receipt for Reply {
    fn acknowledge(&self) -> BoxFuture<'_, ()> {
        self.tell(AckKind::Ack).boxed()
    }

    fn put_back(&self, delay: Duration) -> BoxFuture<'_, ()> {
        self.tell(AckKind::Nak(Some(self.grown(delay)))).boxed()
    }
}
