//! The way messages go from the relay to the workers. A doorbell, not a store: whatever is lost in it is claimed straight from the table, so an implementation
//! may lose and repeat messages, but it must never wait for work to be done and never hold a message back on purpose.

pub mod jetstream;
mod local;

pub use jetstream::JetStream;
pub use local::Local;

use crate::{domain::envelope::Envelope, store::outbox::Outgoing};
use futures::{FutureExt as _, future::BoxFuture};
use std::{fmt, sync::Arc, time::Duration};

/// Carries messages.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Its label in metrics.
    fn name(&self) -> &'static str;

    /// How many messages it takes now.
    fn room(&self) -> usize;

    /// Returns when it takes at least one.
    fn has_room(&self) -> BoxFuture<'_, ()>;

    /// Sends; answers for each message, in order.
    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>>;

    /// Returns at least one message and at most `limit`, as soon as there is one. Dropped before that, it has taken nothing.
    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>>;

    /// Nothing will be received any more: what has come and was not asked for yet is put back.
    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Not now; the same message may go later.
    #[error("the transport takes nothing now: {0}")]
    Unavailable(String),
    /// This message, never: it is put off further each time and stands in nobody's way.
    #[error("the message cannot be sent: {0}")]
    Unsendable(String),
}

/// What a transport wants to be told about a message that it delivered.
pub trait Receipt: Send + Sync + fmt::Debug {
    /// The claim is in the database; the message has done its work.
    fn acknowledge(&self) -> BoxFuture<'_, ()>;
    /// It could not be looked at; deliver it again after `delay`, and later each time.
    fn put_back(&self, delay: Duration) -> BoxFuture<'_, ()>;
}

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub envelope: Envelope,
    /// `None`: the transport does not want to know.
    pub receipt: Option<Arc<dyn Receipt>>,
}

impl Delivery {
    pub async fn acknowledge(&self) {
        if let Some(receipt) = &self.receipt {
            receipt.acknowledge().await;
        }
    }

    pub async fn put_back(&self, delay: Duration) {
        if let Some(receipt) = &self.receipt {
            receipt.put_back(delay).await;
        }
    }
}
