//! What the engine needs to tell events to others.

use crate::base::{
    config,
    outgoing::{Guard, MachineNetwork, Network},
    secret_key::SecretKey,
};
use crate::domain::delivery::Tried;
use futures::future::BoxFuture;
use std::{fmt, sync::Arc};

/// Configuration, keys and ways.
#[derive(Clone)]
pub struct Telling {
    pub config: config::Events,
    /// Seals the secrets of webhooks; without it there are none.
    pub key: Option<SecretKey>,
    /// What names and addresses lead to.
    pub network: Arc<dyn Network>,
    /// Where events go beside webhooks.
    pub stream: Option<Arc<dyn EventStream>>,
}

impl Telling {
    /// With the machine's network, and no stream.
    #[must_use]
    pub fn new(config: config::Events, key: Option<SecretKey>) -> Self {
        Self { config, key, network: Arc::new(MachineNetwork), stream: None }
    }

    /// The rules for addresses that others name.
    #[must_use]
    pub fn guard(&self) -> Guard {
        let guard = if self.config.allow_private_targets { Guard::closed() } else { Guard::public() };
        guard.over(Arc::clone(&self.network))
    }
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").field("config", &self.config).field("stream", &self.stream.is_some()).finish_non_exhaustive()
    }
}

/// An event on its way to a stream.
#[derive(Debug, Clone, Copy)]
pub struct ToStream<'a> {
    /// Under which the stream knows it again.
    pub id: &'a str,
    pub event_type: &'a str,
    pub body: &'a str,
}

/// A log of events that others read, such as a JetStream stream.
pub trait EventStream: Send + Sync + 'static {
    /// Whether it can be reached now; what cannot is not tried, and costs nothing.
    fn is_up(&self) -> bool;

    /// The longest body that it takes.
    fn largest(&self) -> usize;

    /// Sends one; it counts as delivered when the stream has said that it is stored.
    fn send<'a>(&'a self, event: ToStream<'a>) -> BoxFuture<'a, Tried>;
}
