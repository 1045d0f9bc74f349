//! Subscriptions: made, changed and removed by hand, each with its entry in the audit log; those of the configuration are brought up to date at start and read-only
//! otherwise. An address is looked at here and again at every connection.

use super::{
    Telling,
    letter::{of_subscription, place},
    webhook::{Message, Sender},
};
use crate::{
    base::{chain::chain, outgoing::refused},
    domain::{
        audit::{Action, Author},
        delivery::{End, Sink, Tried, WebhookSecret},
        event::{self, EventType},
        ids::{EventId, SubscriptionId},
    },
    engine::core::Core,
    store::{
        self, audit, delivery,
        subscription::{self, Subscription},
    },
};
use futures::FutureExt as _;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// How long a name may take to be resolved while somebody waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// The type of a test ping.
const PING: &str = "ObesrabuoProtocolBridgePing";

/// Why a subscription cannot be had or changed.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    #[error("no secret of a webhook can be kept without auth.secret_key, which is not set")]
    NoKey,
    #[error("the address is not told anything: {0}")]
    Refused(String),
    #[error("there is no such subscription")]
    Unknown,
    #[error("the subscription {0} is written in the configuration and is changed there")]
    Configured(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// What is wanted of a subscription.
#[derive(Debug, Clone)]
pub struct Change {
    pub url: Option<String>,
    pub types: Option<Vec<EventType>>,
    pub enabled: Option<bool>,
}

/// Looks at an address as every connection will. A name that cannot be resolved now may be known later and is let pass.
///
/// # Errors
/// Why it is refused, for whoever names it.
pub(in crate::engine) async fn look(core: &Core, url: &str) -> Result<(), SubscriptionError> {
    let url = reqwest::Url::parse(url).map_err(|error| SubscriptionError::Refused(error.to_string()))?;
    let guard = core.telling.guard();
    let looked = tokio::select! {
        looked = guard.look(&url) => looked,
        () = core.clock.sleep(PATIENCE) => Ok(()),
    };
    match looked.as_ref().map_err(|error| refused(error)) {
        Err(Some(refusal)) => Err(SubscriptionError::Refused(refusal.to_string())),
        Ok(()) | Err(None) => Ok(()),
    }
}

pub(in crate::engine) async fn create(
    core: &Core,
    url: String,
    types: Vec<EventType>,
    author: &Author,
) -> Result<(Subscription, WebhookSecret), SubscriptionError> {
    let key = core.telling.key.as_ref().ok_or(SubscriptionError::NoKey)?;
    look(core, &url).await?;
    let now = core.clock.now();
    let id: SubscriptionId = core.entropy.id(now);
    let secret = WebhookSecret::new(core.entropy.secret().to_vec());
    let secret_sealed = key.seal(&place(id), secret.bytes(), &core.entropy);
    let made = Subscription { id, name: None, url, types, secret_sealed, previous: None, created_at: now, disabled_at: None };
    let entry = core.audit_entry(author, Action::SubscriptionCreate, &id, Some(made.url.clone()), now);
    let stored = Arc::new(made.clone());
    let work = store::work(move |tx| {
        let (stored, entry) = (Arc::clone(&stored), Arc::clone(&entry));
        async move {
            subscription::insert(tx, &stored).await?;
            audit::append(tx, &entry).await
        }
        .boxed()
    });
    core.db.transaction("subscription", work).await?;
    Ok((made, secret))
}

pub(in crate::engine) async fn update(
    core: &Core,
    id: SubscriptionId,
    change: Change,
    author: &Author,
) -> Result<Subscription, SubscriptionError> {
    if let Some(url) = &change.url {
        look(core, url).await?;
    }
    let now = core.clock.now();
    let detail = [change.url.clone(), change.enabled.map(|enabled| if enabled { "enabled" } else { "disabled" }.to_owned())];
    let detail = detail.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let entry = core.audit_entry(author, Action::SubscriptionUpdate, &id, Some(detail).filter(|detail| !detail.is_empty()), now);
    let change = Arc::new(change);
    let work = store::work(move |tx| {
        let (change, entry) = (Arc::clone(&change), Arc::clone(&entry));
        async move {
            let Some(there) = subscription::find(tx, id).await? else { return Ok(None) };
            let url = change.url.as_ref().unwrap_or(&there.url);
            let types = change.types.as_ref().unwrap_or(&there.types);
            let disabled_at = match change.enabled {
                None => there.disabled_at,
                Some(true) => None,
                Some(false) => there.disabled_at.or(Some(now)),
            };
            let Some(changed) = subscription::update(tx, id, url, types, disabled_at).await? else { return Ok(Some(there)) };
            if changed.disabled_at.is_some() && there.disabled_at.is_none() {
                delivery::stop_lane(tx, &Sink::Subscription(id).to_string(), "the subscription is disabled").await?;
            }
            audit::append(tx, &entry).await?;
            Ok(Some(changed))
        }
        .boxed()
    });
    writable(core.db.transaction("subscription", work).await?)
}

/// A new secret; the old one signs as well for `overlap`.
pub(in crate::engine) async fn rotate(
    core: &Core,
    id: SubscriptionId,
    overlap: Duration,
    author: &Author,
) -> Result<(Subscription, WebhookSecret), SubscriptionError> {
    let key = core.telling.key.as_ref().ok_or(SubscriptionError::NoKey)?;
    let now = core.clock.now();
    let secret = WebhookSecret::new(core.entropy.secret().to_vec());
    let sealed: Arc<str> = key.seal(&place(id), secret.bytes(), &core.entropy).into();
    let entry = core.audit_entry(author, Action::SubscriptionRotate, &id, None, now);
    let work = store::work(move |tx| {
        let (sealed, entry) = (Arc::clone(&sealed), Arc::clone(&entry));
        async move {
            let Some(rotated) = subscription::rotate(tx, id, &sealed, now + overlap).await? else {
                return subscription::find(tx, id).await;
            };
            audit::append(tx, &entry).await?;
            Ok(Some(rotated))
        }
        .boxed()
    });
    Ok((writable(core.db.transaction("subscription", work).await?)?, secret))
}

/// Removes it, with all its deliveries.
pub(in crate::engine) async fn delete(core: &Core, id: SubscriptionId, author: &Author) -> Result<(), SubscriptionError> {
    let entry = core.audit_entry(author, Action::SubscriptionDelete, &id, None, core.clock.now());
    let work = store::work(move |tx| {
        let entry = Arc::clone(&entry);
        async move {
            let found = subscription::find(tx, id).await?;
            if found.as_ref().is_some_and(|found| found.name.is_none()) {
                subscription::delete(tx, id).await?;
                delivery::delete_sink(tx, &Sink::Subscription(id)).await?;
                audit::append(tx, &entry).await?;
            }
            Ok(found)
        }
        .boxed()
    });
    writable(core.db.transaction("subscription", work).await?).map(|_| ())
}

fn writable(found: Option<Subscription>) -> Result<Subscription, SubscriptionError> {
    match found {
        None => Err(SubscriptionError::Unknown),
        Some(Subscription { name: Some(name), .. }) => Err(SubscriptionError::Configured(name)),
        Some(subscription) => Ok(subscription),
    }
}

/// Sends a test event now, once, whether the subscription is enabled or not; it is stored nowhere.
pub(in crate::engine) async fn ping(core: &Core, id: SubscriptionId) -> Result<Tried, SubscriptionError> {
    let key = core.telling.key.as_ref().ok_or(SubscriptionError::NoKey)?;
    let found = core.db.read("subscriptions", move |tx| async move { subscription::find(tx, id).await }.boxed()).await?;
    let found = found.ok_or(SubscriptionError::Unknown)?;
    let now = core.clock.now();
    let target = match of_subscription(&Subscription { disabled_at: None, ..found }, Some(key), now) {
        Ok(target) => target,
        Err(tried) => return Ok(tried),
    };
    let event_id: EventId = core.entropy.id(now);
    let body = json!({
        "specversion": "1.0", "id": event_id, "source": event::SOURCE, "type": PING, "time": now, "datacontenttype": "application/json",
        "data": { "subscriptionId": id },
    });
    let sender = Sender::new(&core.telling, core.clock.clone()).map_err(|error| SubscriptionError::Refused(chain(&error)))?;
    Ok(sender.send(Message { url: &target.url, id: &event_id.to_string(), body: body.to_string(), secrets: &target.secrets }).await)
}

/// Whether a ping arrived.
#[must_use]
pub fn arrived(tried: &Tried) -> bool {
    tried.end == End::Delivered
}

/// Brings those of the configuration up to date and removes those that are no longer in it.
///
/// # Errors
/// When there is no key to seal their secrets, a secret cannot be read, or the store cannot be written.
pub(in crate::engine) async fn configure(core: &Core) -> Result<(), SubscriptionError> {
    let Telling { config, key, .. } = &core.telling;
    let now = core.clock.now();
    let mut wanted = Vec::new();
    for written in &config.subscriptions {
        let key = key.as_ref().ok_or(SubscriptionError::NoKey)?;
        let secret = written.secret().map_err(SubscriptionError::Refused)?;
        let types = written.types().map_err(SubscriptionError::Refused)?;
        wanted.push((written.name.clone(), written.url.clone(), types, secret, key.clone()));
    }
    let (wanted, entropy) = (Arc::new(wanted), core.entropy.clone());
    let work = store::work(move |tx| {
        let (wanted, entropy) = (Arc::clone(&wanted), entropy.clone());
        async move {
            for there in subscription::list(tx).await? {
                if there.name.as_ref().is_some_and(|name| !wanted.iter().any(|(wanted, ..)| wanted == name)) {
                    subscription::delete(tx, there.id).await?;
                    delivery::delete_sink(tx, &Sink::Subscription(there.id)).await?;
                }
            }
            for (name, url, types, secret, key) in wanted.iter() {
                let there = subscription::configure(tx, entropy.id(now), name, url, types, now).await?;
                // Sealed anew only when it is another one, so that a start changes nothing for nothing.
                if !key.open(&place(there.id), &there.secret_sealed).is_ok_and(|known| known == secret.bytes()) {
                    subscription::set_secret(tx, there.id, &key.seal(&place(there.id), secret.bytes(), &entropy)).await?;
                }
            }
            Ok(())
        }
        .boxed()
    });
    core.db.transaction("subscription", work).await?;
    Ok(())
}
