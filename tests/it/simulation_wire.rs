//! A transport that loses, repeats, reorders and refuses messages, shared by all nodes of a simulation.

use futures::{FutureExt as _, future::BoxFuture};
use protocol_bridge::{
    domain::envelope::Envelope,
    engine::transport::{Delivery, Receipt, SendError, Transport},
    store::outbox::Outgoing,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

const CAPACITY: usize = 16;

/// The wire; cheap to clone.
#[derive(Debug, Clone)]
pub struct Wire(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    rng: StdRng,
    messages: Vec<Envelope>,
    honest: bool,
}

impl Wire {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State { rng: StdRng::seed_from_u64(seed), messages: Vec::new(), honest: false })))
    }

    /// From now on everything arrives, once.
    pub fn be_honest(&self) {
        self.lock().honest = true;
    }

    /// As a broker that was purged.
    pub fn lose_everything(&self) {
        self.lock().messages.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics while it is held")
    }
}

impl State {
    fn send(&mut self, message: &Outgoing) -> Result<(), SendError> {
        let envelope: Envelope = serde_json::from_str(&message.payload).expect("what the engine stores is an envelope");
        if self.messages.len() >= CAPACITY {
            return Err(SendError::Unavailable("full".to_owned()));
        }
        let copies = match if self.honest { 100 } else { self.rng.random_range(0..100) } {
            0..10 => 0,
            10..20 => 2,
            20..25 => return Err(SendError::Unavailable("on purpose".to_owned())),
            25..27 => return Err(SendError::Unsendable("on purpose".to_owned())),
            // It went out, and the sender is told that it did not.
            27..30 => {
                self.messages.push(envelope);
                return Err(SendError::Unavailable("on purpose, and sent".to_owned()));
            }
            _ => 1,
        };
        self.messages.extend(std::iter::repeat_n(envelope, copies));
        Ok(())
    }

    fn take(&mut self) -> Envelope {
        let at = if self.honest { 0 } else { self.rng.random_range(0..self.messages.len()) };
        self.messages.remove(at)
    }
}

impl Transport for Wire {
    fn name(&self) -> &'static str {
        "local"
    }

    fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.lock().messages.len())
    }

    fn has_room(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        let mut state = self.lock();
        std::future::ready(messages.iter().map(|message| state.send(message)).collect()).boxed()
    }

    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>> {
        let mut state = self.lock();
        if state.messages.is_empty() {
            return std::future::pending().boxed();
        }
        let count = limit.min(state.messages.len());
        let taken: Vec<Envelope> = (0..count).map(|_| state.take()).collect();
        let deliver = |envelope: Envelope| {
            let receipt: Arc<dyn Receipt> = Arc::new(Returnable { wire: self.clone(), envelope: envelope.clone() });
            Delivery { envelope, receipt: Some(receipt) }
        };
        std::future::ready(taken.into_iter().map(deliver).collect()).boxed()
    }
}

/// A message that can be put back; one that is neither acknowledged nor put back is lost with the node that had it.
#[derive(Debug)]
struct Returnable {
    wire: Wire,
    envelope: Envelope,
}

impl Receipt for Returnable {
    fn acknowledge(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn put_back(&self, _: Duration) -> BoxFuture<'_, ()> {
        self.wire.lock().messages.push(self.envelope.clone());
        std::future::ready(()).boxed()
    }
}
