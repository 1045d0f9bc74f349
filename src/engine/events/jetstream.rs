//! Events in NATS JetStream: a stream of their own, a subject for each type, kept for a week or until the operator's limits.
//!
//! It has a connection of its own, so that a full pipe of messages to workers delays no event. An event counts as delivered when NATS has said that it is stored;
//! its id is the message id, so that one sent twice within NATS's window is stored once, and afterwards has the same id in its body. Without NATS deliveries wait
//! in the table and cost nothing.

use super::telling::{EventStream, ToStream};
use crate::{
    base::{chain::chain, clock::Clock, config::NatsServers, shutdown::Shutdown, supervisor},
    domain::{delivery::Tried, event::MEDIA_TYPE},
    engine::transport::jetstream::{
        Error,
        connection::{self, ANSWER},
    },
};
use async_nats::{
    Client, Event,
    connection::State,
    jetstream::{
        Context,
        context::{ContextBuilder, CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind},
        message::PublishMessage,
        stream::{self, DiscardPolicy, RetentionPolicy},
    },
};
use futures::{FutureExt as _, future::BoxFuture};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// How long the start waits for NATS before it goes on without.
const AT_START: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Longer than the longest time in which a delivery is tried twice after a crash.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(10);
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// Above this the oldest go, so that a stream nobody reads does not fill a disk.
const MAX_BYTES: i64 = 1024 * 1024 * 1024;
/// Room for subject and headers within NATS's limit.
const HEADROOM: usize = 4096;

/// The stream; see the module.
pub struct EventsInJetStream {
    client: Client,
    context: Context,
    subject: String,
    stream: String,
    clock: Clock,
    signals: Arc<Signals>,
}

#[derive(Debug, Default)]
struct Signals {
    up: AtomicBool,
    look: Notify,
}

impl fmt::Debug for EventsInJetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventsInJetStream").field("stream", &self.stream).field("up", &self.is_up()).finish_non_exhaustive()
    }
}

impl EventsInJetStream {
    /// Connects and makes sure of the stream. Without NATS it starts as well, and works once NATS is there; `up_again` is told then.
    ///
    /// # Errors
    /// When NATS is there and what is in it cannot be used.
    pub async fn start(servers: &NatsServers, prefix: &str, subject: &str, clock: Clock, shutdown: &Shutdown) -> Result<Arc<Self>, Error> {
        let signals = Arc::new(Signals::default());
        let noted = Arc::clone(&signals);
        let options = connection::options(servers).event_callback(move |event| {
            match event {
                Event::Connected => noted.look.notify_one(),
                Event::Disconnected | Event::Closed => noted.up.store(false, Ordering::Release),
                _ => {}
            }
            std::future::ready(())
        });
        let client = options.connect(servers.servers.as_slice()).await.map_err(|error| Error::Address(chain(&error)))?;
        let context = ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let this = Arc::new(Self {
            client,
            context,
            subject: subject.to_owned(),
            stream: format!("{prefix}-events"),
            clock: clock.clone(),
            signals,
        });
        tokio::select! {
            () = this.signals.look.notified() => match this.look().await {
                Err(error @ (Error::Unfit { .. } | Error::Address(_))) => return Err(error),
                Err(error) => tracing::warn!(error = chain(&error), "events go to NATS once it is there"),
                Ok(()) => {}
            },
            () = clock.sleep(AT_START) => tracing::warn!("events go to NATS once it is there"),
        }
        let (kept, soft) = (Arc::clone(&this), shutdown.soft().clone());
        supervisor::spawn(&clock, shutdown, "events in nats", move || {
            let (kept, soft) = (Arc::clone(&kept), soft.clone());
            async move {
                tokio::select! {
                    () = kept.keep_up() => {}
                    () = soft.cancelled() => {}
                }
            }
        });
        Ok(this)
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream
    }

    async fn keep_up(&self) {
        let mut said = false;
        loop {
            if self.is_up() {
                self.signals.look.notified().await;
            }
            match self.look().await {
                Ok(()) => {
                    if std::mem::take(&mut said) {
                        tracing::info!("events go to NATS again");
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut said, true) {
                        tracing::warn!(error = chain(&error), "events wait for NATS");
                    }
                    tokio::select! {
                        () = self.clock.sleep(LOOK_AGAIN) => {}
                        () = self.signals.look.notified() => {}
                    }
                }
            }
        }
    }

    async fn look(&self) -> Result<(), Error> {
        if self.client.connection_state() != State::Connected {
            return Err(Error::Away("no connection yet".to_owned()));
        }
        self.ensure().await?;
        self.signals.up.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes the stream, or checks it: an operator may choose its limits, storage and replicas; that it keeps what readers have taken, and our subjects, is needed.
    async fn ensure(&self) -> Result<(), Error> {
        let what = || format!("the stream {}", self.stream);
        let subject = format!("{}.*", self.subject);
        match self.context.get_stream(&self.stream).await {
            Ok(there) => {
                let there = &there.cached_info().config;
                if there.retention != RetentionPolicy::Limits {
                    let reason = format!("its retention is {:?}, and one reader would take events from another", there.retention);
                    return Err(Error::Unfit { what: what(), reason });
                }
                if there.subjects.contains(&subject) {
                    return Ok(());
                }
                let mut wanted = there.clone();
                wanted.subjects.push(subject);
                self.context.update_stream(&wanted).await.map(|_| ()).map_err(|error| Error::Unfit { what: what(), reason: chain(&error) })
            }
            Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(answer) if answer.code() == 404) => {
                let wanted = stream::Config {
                    name: self.stream.clone(),
                    description: Some("What protocol-bridge tells when a task has ended (CloudEvents)".to_owned()),
                    subjects: vec![subject],
                    retention: RetentionPolicy::Limits,
                    discard: DiscardPolicy::Old,
                    max_age: MAX_AGE,
                    max_bytes: MAX_BYTES,
                    duplicate_window: DUPLICATE_WINDOW,
                    ..stream::Config::default()
                };
                match self.context.create_stream(wanted).await {
                    Ok(_) => Ok(()),
                    Err(error) => match error.kind() {
                        CreateStreamErrorKind::JetStream(answer) if answer.code() == 400 => {
                            Err(Error::Unfit { what: what(), reason: answer.to_string() })
                        }
                        _ => Err(Error::Away(chain(&error))),
                    },
                }
            }
            Err(error) => Err(Error::Away(chain(&error))),
        }
    }

    async fn publish(&self, event: ToStream<'_>) -> Tried {
        let subject = format!("{}.{}", self.subject, event.event_type);
        let publish = PublishMessage::build()
            .payload(event.body.to_owned().into())
            .message_id(event.id)
            .expected_stream(&self.stream)
            .header("Content-Type", MEDIA_TYPE);
        let stored = match self.context.send_publish(subject, publish).await {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(answer) => {
                let status = if answer.duplicate { "stored before" } else { "stored" };
                Tried { end: crate::domain::delivery::End::Delivered, status: status.to_owned() }
            }
            Err(error) => {
                tracing::debug!(error = chain(&error), eventId = event.id, "an event is not stored");
                if !matches!(error.kind(), PublishErrorKind::MaxPayloadExceeded) {
                    // Whatever it was, nothing more is sent before the stream was looked at.
                    self.signals.up.store(false, Ordering::Release);
                    self.signals.look.notify_one();
                }
                Tried::failed(format!("NATS: {}", error.kind()))
            }
        }
    }
}

impl EventStream for EventsInJetStream {
    fn is_up(&self) -> bool {
        self.signals.up.load(Ordering::Acquire)
    }

    fn largest(&self) -> usize {
        self.client.server_info().max_payload.saturating_sub(HEADROOM)
    }

    fn send<'a>(&'a self, event: ToStream<'a>) -> BoxFuture<'a, Tried> {
        self.publish(event).boxed()
    }
}
