//! [`Transport`] over JetStream.

use super::{
    super::{Delivery, Receipt as _, SendError, Transport},
    link::{Link, Up},
    pull::{Pull, Said},
    receipt::Reply,
    setup::{Error, Names},
};
use crate::{
    base::{chain::chain, clock::Clock, config::NatsServers, metrics, shutdown::Shutdown},
    domain::envelope::{Envelope, PROCESS_TASK},
    store::outbox::Outgoing,
};
use async_nats::jetstream::{
    Message,
    context::{PublishError, PublishErrorKind},
    message::PublishMessage,
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{Mutex, watch};

/// How many messages are on their way at once, not acknowledged yet.
const ROOM: usize = 1024;
/// A process that ends waits this long for its last words to reach NATS.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What a process that ends puts back: not at once, because NATS may still think that its request is open.
const SOON: Duration = Duration::from_millis(500);
const AFTER_A_REFUSAL: Duration = Duration::from_millis(100);

/// The transport of many machines; see the module.
pub struct JetStream {
    link: Arc<Link>,
    pull: Mutex<Option<Pull>>,
}

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStream").field("names", &self.link.names).field("up", &self.link.is_up()).finish_non_exhaustive()
    }
}

impl JetStream {
    /// Connects, and makes sure of stream and consumer. Without NATS it starts as well, and works once NATS is there.
    ///
    /// # Errors
    /// When NATS is there and what is in it cannot be used; nothing runs then.
    pub async fn start(servers: &NatsServers, prefix: &str, clock: Clock, shutdown: &Shutdown) -> Result<Self, Error> {
        let link = Arc::new(Link::connect(servers, prefix, clock).await?);
        link.keep_up(shutdown);
        Ok(Self { link, pull: Mutex::new(None) })
    }

    #[must_use]
    pub fn names(&self) -> &Names {
        &self.link.names
    }

    async fn send_one(&self, message: &Outgoing) -> Result<(), SendError> {
        // What no worker could read is not sent: it would come back for ever.
        read(message.payload.as_bytes()).map_err(SendError::Unsendable)?;
        let Some(up) = self.link.current() else { return Err(SendError::Unavailable("NATS is away".to_owned())) };
        let id = message.message_id.to_string();
        let publish = PublishMessage::build().payload(message.payload.clone().into()).message_id(&id);
        let stored = match self.link.context.send_publish(self.link.names.subject.clone(), publish).await {
            Ok(answer) => answer.await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(answer) => {
                if answer.duplicate {
                    // It was stored under this id before. Whether it still is does not matter: a message that was lost since then is a task in the table.
                    metrics::RELAY_DUPLICATES.increment(&[self.name()]);
                    tracing::debug!(messageId = %message.message_id, taskId = %message.task_id, "NATS had the message already");
                }
                Ok(())
            }
            Err(error) => Err(self.judge(&up, &error)),
        }
    }

    fn judge(&self, up: &Arc<Up>, error: &PublishError) -> SendError {
        let reason = chain(error);
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => SendError::Unsendable(reason),
            kind => {
                // A stream that is gone, an answer that does not come: nothing is sent until the link was looked at.
                if matches!(kind, PublishErrorKind::StreamNotFound | PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe) {
                    self.link.doubt(up, &reason);
                }
                SendError::Unavailable(reason)
            }
        }
    }

    async fn next_messages(&self, limit: usize) -> Vec<Message> {
        let mut kept = self.pull.lock().await;
        let mut watch = self.link.watch();
        loop {
            let up = is_up(&mut watch).await;
            let pull = match &mut *kept {
                Some(pull) => pull,
                none => match Pull::begin(&self.link, Arc::clone(&up)).await {
                    Ok(pull) => none.insert(pull),
                    Err(reason) => {
                        self.doubt(&up, &reason).await;
                        continue;
                    }
                },
            };
            pull.follow(&up);
            if let Err(reason) = pull.ask(&self.link, limit).await {
                self.doubt(&up, &reason).await;
                continue;
            }
            tokio::select! {
                biased;
                said = pull.next(&self.link) => match said {
                    Said::Message(first) => {
                        let mut messages = vec![first];
                        while messages.len() < limit
                            && let Some(message) = pull.come(&self.link)
                        {
                            messages.push(message);
                        }
                        return messages;
                    }
                    Said::Nothing => {}
                    Said::Wrong(reason) => self.doubt(&up, &reason).await,
                    Said::Closed => *kept = None,
                },
                // Down, or up anew.
                _ = watch.changed() => {}
            }
        }
    }

    /// A pause belongs to it: a consumer that says no to every request would keep us spinning.
    async fn doubt(&self, up: &Arc<Up>, reason: &str) {
        self.link.doubt(up, reason);
        self.link.clock.sleep(AFTER_A_REFUSAL).await;
    }

    /// What came and was not handed out is put back, for others.
    async fn end(&self, pull: Pull) {
        for message in pull.end().await {
            let (_, reply) = Reply::of(Message { message, context: self.link.context.clone() });
            reply.put_back(SOON).await;
        }
    }

    /// What a worker can read; everything else is ended, because it will not get better.
    async fn deliver(message: Message) -> Option<Delivery> {
        let (body, reply) = Reply::of(message);
        match read(&body) {
            Ok(envelope) => Some(Delivery { envelope, receipt: Some(Arc::new(reply)) }),
            Err(reason) => {
                tracing::warn!(reason, bytes = body.len(), "a message in NATS cannot be read and is dropped");
                reply.end().await;
                None
            }
        }
    }
}

/// The link once it is up; later changes are news to the receiver.
async fn is_up(watch: &mut watch::Receiver<Option<Arc<Up>>>) -> Arc<Up> {
    // Cloned before anything is awaited: the guard locks the sender out.
    let up = watch.wait_for(Option::is_some).await.ok().and_then(|up| up.clone());
    match up {
        Some(up) => up,
        // The link is gone, and with it everyone who could wait for it.
        None => std::future::pending().await,
    }
}

fn read(body: &[u8]) -> Result<Envelope, String> {
    let envelope: Envelope = serde_json::from_slice(body).map_err(|error| format!("not an envelope: {error}"))?;
    if envelope.envelope_type == PROCESS_TASK {
        Ok(envelope)
    } else {
        Err(format!("an envelope of another type: {:.64}", envelope.envelope_type))
    }
}

impl Transport for JetStream {
    fn name(&self) -> &'static str {
        "jetstream"
    }

    fn room(&self) -> usize {
        if self.link.is_up() { ROOM } else { 0 }
    }

    fn has_room(&self) -> BoxFuture<'_, ()> {
        async move {
            is_up(&mut self.link.watch()).await;
        }
        .boxed()
    }

    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        // All of them are on their way before the first answer is waited for.
        join_all(messages.iter().map(|message| self.send_one(message))).boxed()
    }

    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>> {
        async move {
            loop {
                let messages = self.next_messages(limit.max(1)).await;
                let deliveries: Vec<Delivery> = join_all(messages.into_iter().map(Self::deliver)).await.into_iter().flatten().collect();
                if !deliveries.is_empty() {
                    return deliveries;
                }
            }
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            let closing = async {
                if let Some(pull) = self.pull.lock().await.take() {
                    self.end(pull).await;
                }
                let _ = self.link.client.flush().await;
            };
            tokio::select! {
                () = closing => {}
                () = self.link.clock.sleep(LAST_WORDS) => {}
            }
        }
        .boxed()
    }
}
