//! Who changed what by hand. An entry commits in the transaction of the change, so there is neither a change without its entry nor an entry without its change.

use super::{
    ids::{AuditId, RequestId},
    task::UnknownWord,
    time::Timestamp,
};
use std::{fmt, str::FromStr};

/// What can be done by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    TaskCancel,
    DeadLetterReplay,
    DeadLetterDismiss,
    EnginePause,
    EngineResume,
    SubscriptionCreate,
    SubscriptionUpdate,
    SubscriptionRotate,
    SubscriptionDelete,
    DeliveryResend,
}

impl Action {
    pub const ALL: [Self; 10] = [
        Self::TaskCancel,
        Self::DeadLetterReplay,
        Self::DeadLetterDismiss,
        Self::EnginePause,
        Self::EngineResume,
        Self::SubscriptionCreate,
        Self::SubscriptionUpdate,
        Self::SubscriptionRotate,
        Self::SubscriptionDelete,
        Self::DeliveryResend,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TaskCancel => "task.cancel",
            Self::DeadLetterReplay => "dead-letter.replay",
            Self::DeadLetterDismiss => "dead-letter.dismiss",
            Self::EnginePause => "engine.pause",
            Self::EngineResume => "engine.resume",
            Self::SubscriptionCreate => "subscription.create",
            Self::SubscriptionUpdate => "subscription.update",
            Self::SubscriptionRotate => "subscription.rotate-secret",
            Self::SubscriptionDelete => "subscription.delete",
            Self::DeliveryResend => "delivery.resend",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|action| action.as_str() == text).ok_or_else(|| UnknownWord(text.to_owned(), "action"))
    }
}

/// Who does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The caller's name, or `cli` and the user of the machine.
    pub name: String,
    /// Where from: an address, or `local`.
    pub address: String,
    pub request_id: RequestId,
}

/// One change made by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: AuditId,
    pub at: Timestamp,
    pub author: Author,
    pub action: Action,
    /// What it was done to, such as a task's id.
    pub object: String,
    /// How, where there is a choice: the phase from which a task is replayed.
    pub detail: Option<String>,
}
