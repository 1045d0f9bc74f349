//! Telling one event to one sink: how a try ends, what follows from that, and the secrets by which receivers know us.

use super::{
    event::EventType,
    ids::{DeliveryId, EventId, SubscriptionId, TaskId},
    time::Timestamp,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use std::{fmt, str::FromStr, time::Duration};

/// The longest schedule.
pub const MOST_TRIES: usize = 32;
/// A receiver may ask us to stay away for so long, not longer.
const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(24);

/// How one try ended. The text names a status or a cause, never anything that the receiver wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub end: End,
    pub status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The receiver has it.
    Delivered,
    /// It may be different next time.
    Failed { retry_after: Option<Duration> },
    /// It will not be different next time.
    Refused,
    /// The receiver wants nothing more (410).
    Gone,
}

/// What is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Done,
    TryAt(Timestamp),
    GiveUp,
}

impl Tried {
    /// How a receiver's status is understood. 408, 425, 429 and 5xx may pass; every other refusal is about the request and would be the same again. A redirect is
    /// not followed and counts as a failure: somebody may be moving the receiver.
    #[must_use]
    pub fn answered(status: u16, retry_after: Option<Duration>) -> Self {
        let end = match status {
            200..=299 => End::Delivered,
            410 => End::Gone,
            300..=399 | 408 | 425 | 429 | 500..=599 => End::Failed { retry_after },
            _ => End::Refused,
        };
        Self { end, status: format!("HTTP {status}") }
    }

    #[must_use]
    pub fn failed(status: impl Into<String>) -> Self {
        Self { end: End::Failed { retry_after: None }, status: status.into() }
    }

    /// What follows, after `tries` of them in all. `jitter` spreads receivers' returns by up to a tenth; it is between 0 and 1.
    #[must_use]
    pub fn next(&self, tries: u32, schedule: &[Duration], jitter: f64, now: Timestamp) -> Next {
        match self.end {
            End::Delivered => Next::Done,
            End::Refused | End::Gone => Next::GiveUp,
            End::Failed { retry_after } => match usize::try_from(tries).ok().and_then(|tries| schedule.get(tries)) {
                None => Next::GiveUp,
                Some(wait) => {
                    let wait = wait.mul_f64(1.0 + 0.1 * jitter.clamp(0.0, 1.0));
                    let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                    Next::TryAt(now + wait.max(asked))
                }
            },
        }
    }
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It will be tried, or is being tried.
    Pending,
    Delivered,
    /// Given up.
    Failed,
}

impl State {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for State {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or("is none of pending, delivered and failed")
    }
}

/// Who is told, as stored with a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sink {
    JetStream,
    Subscription(SubscriptionId),
    /// A task's own callback.
    Callback(String),
}

impl Sink {
    /// Its kind, as metrics count it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::JetStream => "jetstream",
            Self::Subscription(_) | Self::Callback(_) => "webhook",
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JetStream => f.write_str("jetstream"),
            Self::Subscription(id) => write!(f, "subscription:{id}"),
            Self::Callback(url) => write!(f, "callback:{url}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no sink")]
pub struct UnknownSink(String);

impl FromStr for Sink {
    type Err = UnknownSink;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownSink(text.to_owned());
        match text.split_once(':') {
            None if text == "jetstream" => Ok(Self::JetStream),
            Some(("subscription", id)) => id.parse().map(Self::Subscription).map_err(|_| unknown()),
            Some(("callback", url)) => Ok(Self::Callback(url.to_owned())),
            _ => Err(unknown()),
        }
    }
}

/// A delivery as people look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub event_id: EventId,
    pub event_type: EventType,
    pub task_id: TaskId,
    pub sink: Sink,
    pub attempts: u32,
    pub next_at: Option<Timestamp>,
    pub last_status: Option<String>,
    pub last_tried_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Delivery {
    #[must_use]
    pub const fn state(&self) -> State {
        match (self.delivered_at, self.next_at) {
            (Some(_), _) => State::Delivered,
            (None, Some(_)) => State::Pending,
            (None, None) => State::Failed,
        }
    }
}

/// A secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is whsec_ followed by 24 to 64 random bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)")]
pub struct InvalidSecret;

impl WebhookSecret {
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As its receiver is given it.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("whsec_{}", BASE64_STANDARD.encode(&self.0))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whsec_***")
    }
}

impl FromStr for WebhookSecret {
    type Err = InvalidSecret;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.strip_prefix("whsec_").and_then(|text| BASE64_STANDARD.decode(text).ok()).ok_or(InvalidSecret)?;
        if (24..=64).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Case W-03: what is final and what is tried again.
    #[test]
    fn w_03_some_answers_are_final_and_some_are_not() {
        let now = Timestamp::from_micros(1_000_000);
        let schedule = [Duration::ZERO, 5 * SECOND, 60 * SECOND];
        let next = |status, retry_after, tries| Tried::answered(status, retry_after).next(tries, &schedule, 0.0, now);
        for status in [200, 202, 204, 299] {
            assert_eq!(next(status, None, 1), Next::Done, "{status}");
        }
        for status in [400, 401, 403, 404, 409, 410, 413, 422] {
            assert_eq!(next(status, None, 1), Next::GiveUp, "{status}");
        }
        for status in [301, 307, 408, 425, 429, 500, 502, 503, 504] {
            assert_eq!(next(status, None, 1), Next::TryAt(now + 5 * SECOND), "{status}");
        }
        assert_eq!(next(503, Some(20 * SECOND), 1), Next::TryAt(now + 20 * SECOND), "later, if it asks for that");
        assert_eq!(next(503, Some(SECOND), 1), Next::TryAt(now + 5 * SECOND), "never earlier");
        assert_eq!(next(429, Some(1_000_000 * SECOND), 1), Next::TryAt(now + LONGEST_RETRY_AFTER));
        assert_eq!(next(500, None, 2), Next::TryAt(now + 60 * SECOND));
        assert_eq!(next(500, None, 3), Next::GiveUp, "the schedule is used up");
        assert_eq!(Tried::failed("timeout").next(1, &schedule, 1.0, now), Next::TryAt(now + 5 * SECOND + SECOND / 2));
    }

    #[test]
    fn sinks_and_secrets_are_read_back() {
        for sink in [Sink::JetStream, Sink::Subscription(SubscriptionId(uuid::Uuid::max())), Sink::Callback("https://e.org/a:b".to_owned())]
        {
            assert_eq!(sink.to_string().parse(), Ok(sink));
        }
        assert!("subscription:x".parse::<Sink>().is_err() && "elsewhere".parse::<Sink>().is_err());
        let secret = WebhookSecret::new(vec![7; 32]);
        assert_eq!(secret.expose().parse(), Ok(secret.clone()));
        assert!(!format!("{secret:?}").contains(&secret.expose()[6..]));
        for bad in ["", "whsec_", "whsec_AAAA", "whsec_???", &secret.expose()[6..]] {
            assert_eq!(bad.parse::<WebhookSecret>(), Err(InvalidSecret), "{bad}");
        }
    }
}
