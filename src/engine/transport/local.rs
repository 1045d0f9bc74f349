//! A bounded channel within the process. A message that is in it when the process dies is gone: its task is claimed from the table.

use super::{Delivery, SendError, Transport};
use crate::{base::metrics, domain::envelope::Envelope, store::outbox::Outgoing};
use futures::{FutureExt as _, future::BoxFuture};
use tokio::sync::{Mutex, mpsc};

/// The transport of one process.
#[derive(Debug)]
pub struct Local {
    sender: mpsc::Sender<Envelope>,
    receiver: Mutex<mpsc::Receiver<Envelope>>,
}

impl Local {
    /// A channel for `capacity` messages: enough that no worker waits for the relay, few enough that the order of due times is kept by the table.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        // It lives as long as the process.
        metrics::TRANSPORT_UP.set(&[], 1.0);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

impl Transport for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn room(&self) -> usize {
        self.sender.capacity()
    }

    fn has_room(&self) -> BoxFuture<'_, ()> {
        // An error would mean that the receiver is gone, and it lives in self.
        self.sender.reserve().map(|_| ()).boxed()
    }

    fn send<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        let send = |message: &Outgoing| {
            let envelope: Envelope =
                serde_json::from_str(&message.payload).map_err(|error| SendError::Unsendable(format!("not an envelope: {error}")))?;
            self.sender.try_send(envelope).map_err(|error| SendError::Unavailable(error.to_string()))
        };
        let answers = messages.iter().map(send).collect();
        std::future::ready(answers).boxed()
    }

    fn receive(&self, limit: usize) -> BoxFuture<'_, Vec<Delivery>> {
        async move {
            let mut envelopes = Vec::new();
            // Cancel-safe: a receive that is dropped has taken nothing.
            self.receiver.lock().await.recv_many(&mut envelopes, limit.max(1)).await;
            envelopes.into_iter().map(|envelope| Delivery { envelope, receipt: None }).collect()
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{MessageId, TaskId};
    use uuid::Uuid;

    fn outgoing(payload: Option<&str>) -> Outgoing {
        let (message_id, task_id) = (MessageId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(2)));
        let envelope = Envelope::process_task(message_id, task_id, "{}").to_json();
        Outgoing { message_id, task_id, payload: payload.map_or(envelope, ToOwned::to_owned), send_attempts: 0 }
    }

    #[tokio::test]
    async fn it_takes_what_it_has_room_for_and_refuses_rubbish_for_good() {
        let local = Local::new(1);
        let answers = local.send(&[outgoing(Some("rubbish")), outgoing(None), outgoing(None)]).await;
        assert!(matches!(answers[0], Err(SendError::Unsendable(_))));
        assert_eq!(answers[1], Ok(()));
        assert!(matches!(answers[2], Err(SendError::Unavailable(_))));
        assert_eq!(local.room(), 0);
        assert_eq!(local.receive(9).await.len(), 1);
        local.has_room().await;
    }
}
