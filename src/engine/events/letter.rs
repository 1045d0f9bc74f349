//! A delivery with everything that its try needs, read in the transaction that claims it: the event's body, and the receiver's address and secrets as they are now.

use crate::{
    base::secret_key::SecretKey,
    domain::{
        delivery::{End, Sink, Tried, WebhookSecret},
        event::EventType,
        ids::{DeliveryId, EventId, SubscriptionId, TaskId},
        time::Timestamp,
    },
    store::{
        self, IdList, Tx, callback, delivery,
        subscription::{self, Subscription},
    },
};
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Letter {
    pub(super) id: DeliveryId,
    pub(super) event_id: EventId,
    pub(super) event_type: EventType,
    pub(super) task_id: TaskId,
    pub(super) sink: Sink,
    pub(super) lane: String,
    /// Tries until now.
    pub(super) attempts: u32,
    pub(super) body: String,
    /// For a webhook; else why there is nobody to send it to.
    pub(super) target: Result<Target, Tried>,
}

#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) url: String,
    pub(super) secrets: Vec<WebhookSecret>,
}

/// The claimed deliveries as letters.
pub(super) async fn read(tx: &mut Tx<'_>, ids: IdList, key: Option<&SecretKey>, now: Timestamp) -> store::Result<Vec<Letter>> {
    let claimed = delivery::claimed(tx, ids).await?;
    let subscribed: IdList = claimed
        .iter()
        .filter_map(|claimed| match claimed.sink {
            Sink::Subscription(id) => Some(id.0),
            _ => None,
        })
        .collect();
    let subscriptions: HashMap<SubscriptionId, Subscription> = if subscribed.is_empty() {
        HashMap::new()
    } else {
        subscription::find_many(tx, subscribed).await?.into_iter().map(|one| (one.id, one)).collect()
    };
    let mut letters = Vec::with_capacity(claimed.len());
    for claimed in claimed {
        let target = match &claimed.sink {
            Sink::JetStream => Err(nobody("it is for the stream")),
            Sink::Subscription(id) => match subscriptions.get(id) {
                Some(subscription) => of_subscription(subscription, key, now),
                None => Err(nobody("the subscription is gone")),
            },
            Sink::Callback(url) => {
                let caller = callback::caller(tx, claimed.task_id, url).await?.unwrap_or_default();
                key.map(|key| Target { url: url.clone(), secrets: vec![callback_secret(key, &caller)] })
                    .ok_or_else(|| Tried::failed("auth.secret_key is not set"))
            }
        };
        letters.push(Letter {
            id: claimed.id,
            event_id: claimed.event_id,
            event_type: claimed.event_type,
            task_id: claimed.task_id,
            sink: claimed.sink,
            lane: claimed.lane,
            attempts: claimed.attempts,
            body: claimed.body,
            target,
        });
    }
    Ok(letters)
}

fn nobody(why: &str) -> Tried {
    Tried { end: End::Refused, status: why.to_owned() }
}

/// Address and secrets of a subscription; both secrets while one is being replaced.
pub(super) fn of_subscription(subscription: &Subscription, key: Option<&SecretKey>, now: Timestamp) -> Result<Target, Tried> {
    if subscription.disabled_at.is_some() {
        return Err(nobody("the subscription is disabled"));
    }
    let key = key.ok_or_else(|| Tried::failed("auth.secret_key is not set"))?;
    let previous = subscription.previous.as_ref().filter(|(_, until)| now < *until).map(|(sealed, _)| sealed);
    let sealed = std::iter::once(&subscription.secret_sealed).chain(previous);
    let opened = sealed.map(|sealed| key.open(&place(subscription.id), sealed).map(WebhookSecret::new));
    let secrets = opened.collect::<Result<Vec<_>, _>>().map_err(|_| Tried::failed("its secret was sealed with another auth.secret_key"))?;
    Ok(Target { url: subscription.url.clone(), secrets })
}

/// What a subscription's secret is sealed for.
pub(super) fn place(id: SubscriptionId) -> String {
    format!("subscription {id}")
}

/// The secret of a caller's callbacks: nobody has to store it, and the caller can ask for it at any time.
pub(in crate::engine) fn callback_secret(key: &SecretKey, caller: &str) -> WebhookSecret {
    WebhookSecret::new(key.derive(&format!("callbacks of {caller}")).to_vec())
}
