//! Whether the engine claims tasks.

use crate::{domain::time::Timestamp, engine::Paused};
use serde::Serialize;
use utoipa::ToSchema;

/// Whether claiming is paused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "paused": true, "since": "2026-11-30T12:00:00Z", "by": "operator" }))]
pub struct EngineState {
    pub paused: bool,
    /// Since when; null while it is not.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub since: Option<Timestamp>,
    /// Who paused it.
    #[schema(required)]
    pub by: Option<String>,
}

impl From<Option<Paused>> for EngineState {
    fn from(paused: Option<Paused>) -> Self {
        match paused {
            Some(Paused { since, by }) => Self { paused: true, since: Some(since), by: Some(by) },
            None => Self { paused: false, since: None, by: None },
        }
    }
}
