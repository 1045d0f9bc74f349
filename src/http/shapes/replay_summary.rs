//! What came of replaying many dead letters.

use crate::{
    domain::ids::DeadLetterId,
    engine::{ReplayedMany, Skipped},
};
use serde::Serialize;
use utoipa::ToSchema;

/// What was replayed, and what was not.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "dryRun": false, "matching": 18, "replayed": 17, "skipped": [{ "id": "0198c0e0-0000-7000-8000-000000000001", "reason": "agenda-busy" }],
    "nextCursor": null
}))]
pub struct ReplaySummary {
    /// Nothing was replayed: it was only counted.
    pub dry_run: bool,
    /// How many open dead letters matched when the call began.
    pub matching: u64,
    pub replayed: u64,
    pub skipped: Vec<SkippedShape>,
    /// The call looked at as many as it may: give it as `cursor` to go on. Null: that was all.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// One that was not replayed.
#[derive(Debug, Serialize, ToSchema)]
pub struct SkippedShape {
    #[schema(value_type = Uuid)]
    pub id: DeadLetterId,
    /// `agenda-busy`: another task of its agenda is active; `already-replayed`: somebody else did; `not-found`: its task is past its retention; `internal`.
    pub reason: &'static str,
}

impl ReplaySummary {
    #[must_use]
    pub fn of(replayed: ReplayedMany, dry_run: bool) -> Self {
        let skipped = replayed.skipped.into_iter().map(|Skipped { id, reason }| SkippedShape { id, reason });
        Self {
            dry_run,
            matching: replayed.matching,
            replayed: replayed.replayed,
            skipped: skipped.collect(),
            next_cursor: replayed.next_cursor.map(|cursor| cursor.to_string()),
        }
    }
}
