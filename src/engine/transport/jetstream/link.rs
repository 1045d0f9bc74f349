//! The connection, and whether messages can go over it: connected, and stream and consumer as they should be.
//!
//! The client reconnects for ever. One loop looks after every connect, and whenever a send or a pull found something wrong; until its look went well the link
//! is down and nobody uses it.

use super::{
    connection::{self, ANSWER, FIRST_WAIT, LONGEST_WAIT},
    setup::{self, Error, Names},
};
use crate::base::{
    chain::chain,
    clock::{Clock, Monotonic},
    config::NatsServers,
    metrics,
    shutdown::Shutdown,
    supervisor,
};
use async_nats::{
    Client, Event,
    connection::State,
    jetstream::{Context, consumer::PullConsumer, context::ContextBuilder},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// How long the start waits for NATS before it goes on without.
const AT_START: Duration = Duration::from_secs(3);
const AFTER_A_DOUBT: Duration = Duration::from_secs(1);
/// While it is away this is said so often.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// The link while it is up; a new one after every look that went well, so that who holds an old one knows.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) consumer: PullConsumer,
}

pub(super) struct Link {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) names: Names,
    pub(super) clock: Clock,
    signals: Arc<Signals>,
}

/// What the client's events reach.
struct Signals {
    up: watch::Sender<Option<Arc<Up>>>,
    look: Notify,
    /// The client's last complaint.
    complaint: Mutex<Option<String>>,
}

impl Signals {
    fn note(&self, event: &Event) {
        match event {
            Event::Connected => self.look.notify_one(),
            Event::Disconnected | Event::Closed => self.down(),
            Event::ServerError(_) | Event::ClientError(_) => {
                *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.to_string());
            }
            Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => {}
        }
    }

    fn down(&self) {
        metrics::TRANSPORT_UP.set(&[], 0.0);
        self.up.send_replace(None);
        self.look.notify_one();
    }

    /// The client hands on what kind of error it was, and keeps the cause to itself.
    fn complaint(&self) -> String {
        let said = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        format!("{}; protocol-bridge doctor tells the cause", said.as_deref().unwrap_or("no connection yet"))
    }
}

impl Link {
    /// Connects and looks. A NATS that is away is no error: the link is down until it is there.
    ///
    /// # Errors
    /// When NATS is there and what is in it cannot be used.
    pub(super) async fn connect(servers: &NatsServers, prefix: &str, clock: Clock) -> Result<Self, Error> {
        let signals = Arc::new(Signals { up: watch::Sender::new(None), look: Notify::new(), complaint: Mutex::default() });
        metrics::TRANSPORT_UP.set(&[], 0.0);
        let noted = Arc::clone(&signals);
        let options = connection::options(servers).event_callback(move |event| {
            noted.note(&event);
            std::future::ready(())
        });
        let client = options.connect(servers.servers.as_slice()).await.map_err(|error| Error::Address(chain(&error)))?;
        let context = ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let link = Self { client, context, names: Names::new(prefix), clock, signals };
        tokio::select! {
            () = link.signals.look.notified() => match link.look().await {
                Err(error @ (Error::Unfit { .. } | Error::Address(_))) => return Err(error),
                Err(error) => tracing::warn!(error = chain(&error), "starting without NATS; tasks are taken from the database until it is there"),
                Ok(()) => {}
            },
            () = link.clock.sleep(AT_START) => {
                tracing::warn!(error = link.signals.complaint(), "starting without NATS; tasks are taken from the database until it is there");
            }
        }
        Ok(link)
    }

    /// Keeps it up for as long as new work is taken.
    pub(super) fn keep_up(self: &Arc<Self>, shutdown: &Shutdown) {
        let (link, soft) = (Arc::clone(self), shutdown.soft().clone());
        supervisor::spawn(&self.clock, shutdown, "nats", move || {
            let (link, soft) = (Arc::clone(&link), soft.clone());
            async move {
                tokio::select! {
                    () = link.run() => {}
                    () = soft.cancelled() => {}
                }
            }
        });
    }

    async fn run(&self) {
        let mut wait = FIRST_WAIT;
        let mut said: Option<Monotonic> = None;
        loop {
            if self.is_up() {
                if let Some(since) = said.take() {
                    tracing::info!(away = ?self.clock.monotonic().since(since), "NATS is there again");
                }
                self.signals.look.notified().await;
                // Still connected, so something was doubted: a stream or a consumer that is being deleted right now. One that is made again under the same
                // name before that is over was seen to deliver nothing (nats-server 2.9.10).
                if !self.is_up() && self.client.connection_state() == State::Connected {
                    self.clock.sleep(AFTER_A_DOUBT).await;
                }
            }
            match self.look().await {
                Ok(()) => wait = FIRST_WAIT,
                Err(error) => {
                    let now = self.clock.monotonic();
                    if said.is_none_or(|at| now.since(at) >= SAY_AGAIN) {
                        said = Some(now);
                        tracing::warn!(error = chain(&error), "NATS cannot be used; tasks are taken from the database until it can");
                    }
                    tokio::select! {
                        () = self.clock.sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
                        () = self.signals.look.notified() => {}
                    }
                }
            }
        }
    }

    async fn look(&self) -> Result<(), Error> {
        if self.client.connection_state() != State::Connected {
            return Err(Error::Away(self.signals.complaint()));
        }
        let consumer = setup::ensure(&self.context, &self.names).await?;
        self.signals.up.send_replace(Some(Arc::new(Up { consumer })));
        metrics::TRANSPORT_UP.set(&[], 1.0);
        Ok(())
    }

    /// A send or a pull went wrong in a way that a healthy link does not know: nobody uses it until it was looked at. What went wrong with an older one was
    /// looked at already.
    pub(super) fn doubt(&self, up: &Arc<Up>, reason: &str) {
        let doubted = self.signals.up.send_if_modified(|current| {
            let same = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, up));
            if same {
                *current = None;
            }
            same
        });
        if doubted {
            tracing::debug!(reason, "NATS is looked at");
            self.signals.down();
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.current().is_some()
    }

    pub(super) fn current(&self) -> Option<Arc<Up>> {
        self.signals.up.borrow().clone()
    }

    /// Follows it.
    pub(super) fn watch(&self) -> watch::Receiver<Option<Arc<Up>>> {
        self.signals.up.subscribe()
    }
}
