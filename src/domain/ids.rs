//! Identifiers as types of their own, so that a message id can never be passed where a task id is meant.
//!
//! Ids are UUIDv7 (RFC 9562) made by [`crate::base::entropy::Entropy`]; an agenda id is the caller's own string, checked once here.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// Why a text is not one of our ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an id; ids are UUIDs such as 0198c0de-7a3e-7c11-9d2b-3f5a60718293")]
pub struct InvalidId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self).map_err(|_| InvalidId)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    };
}

id!(
    /// One accepted piece of work.
    TaskId
);
id!(
    /// One message of the outbox; the key by which the inbox drops duplicates. Fresh for every retry and replay.
    MessageId
);
id!(
    /// The right to write to a task, fresh for each claim.
    LeaseToken
);
id!(
    /// One taking of a task by a worker, as stored.
    AttemptId
);
id!(
    /// A worker: random per process start, so that a restarted node is never taken for its former self.
    WorkerId
);
id!(
    /// A finished protocol (one version of it).
    ProtocolId
);
id!(
    /// A dead letter; a task replayed and failed again has two.
    DeadLetterId
);
id!(
    /// An event told to the outside; the same on every delivery.
    EventId
);
id!(
    /// The telling of one event to one sink, with all its tries.
    DeliveryId
);
id!(
    /// A webhook that is told about events.
    SubscriptionId
);
id!(
    /// One HTTP request: body (`instance`), log and `X-Request-Id` carry the same one.
    RequestId
);
id!(
    /// An entry of the audit log.
    AuditId
);

/// The caller's name for an agenda: `[A-Za-z0-9][A-Za-z0-9._~-]{0,127}`, so it is safe in a path, a file name and a log line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgendaId(String);

/// Why a text is not an [`AgendaId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an agenda id is 1 to 128 characters of A-Z a-z 0-9 . _ ~ - and starts with a letter or digit")]
pub struct InvalidAgendaId;

impl AgendaId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgendaId {
    type Err = InvalidAgendaId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut characters = text.bytes();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphanumeric());
        let rest = characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-'));
        if first && rest && text.len() <= 128 { Ok(Self(text.to_owned())) } else { Err(InvalidAgendaId) }
    }
}

impl TryFrom<String> for AgendaId {
    type Error = InvalidAgendaId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl<'de> Deserialize<'de> for AgendaId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for AgendaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agenda_ids_are_safe_names() {
        for good in ["42", "a", "Council-2026.11_30~x", &"a".repeat(128)] {
            assert!(good.parse::<AgendaId>().is_ok(), "{good}");
        }
        for bad in ["", "../x", ".hidden", "-x", "a/b", "a b", "a\0", "п", &"a".repeat(129)] {
            assert!(bad.parse::<AgendaId>().is_err(), "{bad:?}");
        }
    }
}
