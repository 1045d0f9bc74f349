//! A webhook as clients see it. Its secret is in no shape but those that hand it out once.

use crate::{
    domain::{event::EventType, ids::SubscriptionId, time::Timestamp},
    store::subscription::Subscription,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A webhook that is told about events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "subscriptionId": "0198c0e2-0000-7000-8000-000000000001", "name": null, "url": "https://agenda.example.org/hooks/protocols",
    "types": ["ObesrabuoProtocolGenerationCompleted"], "enabled": true, "configured": false, "previousSecretUntil": null,
    "createdAt": "2026-11-30T12:00:00Z", "disabledAt": null
}))]
pub struct SubscriptionShape {
    #[schema(value_type = Uuid)]
    pub subscription_id: SubscriptionId,
    /// Its name in the configuration.
    #[schema(required)]
    pub name: Option<String>,
    pub url: String,
    /// Empty: all.
    pub types: Vec<&'static str>,
    /// false: nothing is told; the receiver answered 410, or somebody switched it off.
    pub enabled: bool,
    /// It is written in the configuration and read-only here.
    pub configured: bool,
    /// Until then the secret before signs as well.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub previous_secret_until: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub disabled_at: Option<Timestamp>,
}

impl From<Subscription> for SubscriptionShape {
    fn from(one: Subscription) -> Self {
        Self {
            subscription_id: one.id,
            configured: one.name.is_some(),
            name: one.name,
            url: one.url,
            types: one.types.into_iter().map(EventType::as_str).collect(),
            enabled: one.disabled_at.is_none(),
            previous_secret_until: one.previous.map(|(_, until)| until),
            created_at: one.created_at,
            disabled_at: one.disabled_at,
        }
    }
}

/// A webhook with its new secret, which is shown this once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "subscriptionId": "0198c0e2-0000-7000-8000-000000000001", "name": null, "url": "https://agenda.example.org/hooks/protocols", "types": [],
    "enabled": true, "configured": false, "previousSecretUntil": null, "createdAt": "2026-11-30T12:00:00Z", "disabledAt": null,
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
}))]
pub struct SubscriptionWithSecret {
    #[serde(flatten)]
    pub subscription: SubscriptionShape,
    /// What verifies the signatures; shown only now.
    pub secret: String,
}

/// All webhooks; there are few, so there are no pages.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionList {
    pub items: Vec<SubscriptionShape>,
    /// Always null.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// What came of a test ping.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "arrived": true, "status": "HTTP 204" }))]
pub struct PingResult {
    /// The receiver answered 2xx.
    pub arrived: bool,
    /// Its status, or why there is none; never what it wrote.
    pub status: String,
}

/// The secret that signs a caller's callbacks.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "caller": "agenda-state-machine", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }))]
pub struct CallbackSecret {
    /// Whose callbacks.
    pub caller: String,
    pub secret: String,
}
