//! `POST /api/dead-letters/replay`: put back into the queue whatever matches a filter.

use super::dead_letters::Reason;
use crate::{
    callers::Identity,
    domain::{
        cursor::Cursor,
        failure::FailureCode,
        ids::{AgendaId, RequestId},
        task::Phase,
        time::Timestamp,
    },
    engine::{DeadLetterFilter, ReplayMany},
    http::{
        Api, Problem,
        door::JsonBody,
        fields::{Fields, kind_of, parsed},
        shapes::{ProblemDetails, ReplaySummary},
    },
};
use axum::{Extension, Json, extract::State};
use serde_json::Value;
use utoipa::ToSchema;

/// How many dead letters a call looks at unless asked otherwise, and at most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// Which dead letters to replay. A filter is needed, or `all`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "reason": "agenda-source-unavailable", "from": "2026-11-30T12:00:00Z", "dryRun": true }))]
pub struct ReplayManyRequest {
    /// A code of the failure catalogue.
    #[schema(value_type = Option<String>)]
    pub reason: Option<FailureCode>,
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$")]
    pub agenda_id: Option<AgendaId>,
    /// Failed at this time or later; with an offset.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// Failed before this time; with an offset.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Timestamp>,
    /// true: everything that is open, if there is no filter.
    pub all: Option<bool>,
    /// true: only count.
    pub dry_run: Option<bool>,
    /// Forget what this phase and the later ones did: COLLECT, CHECK, MERGE or PUBLISH.
    #[schema(value_type = Option<String>, pattern = "^(COLLECT|CHECK|MERGE|PUBLISH)$")]
    pub from_phase: Option<Phase>,
    /// The last answer's nextCursor.
    #[schema(pattern = "^[A-Za-z0-9_-]{32}$")]
    pub cursor: Option<String>,
    /// How many to look at; 100 if left out.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

fn read(body: Value) -> Result<ReplayMany, Problem> {
    let mut fields = Fields::of(body)?;
    let filter = DeadLetterFilter {
        reason: fields.optional("reason", parsed::<Reason>).map(|reason| reason.0),
        agenda_id: fields.optional("agendaId", parsed),
        from: fields.optional("from", parsed),
        to: fields.optional("to", parsed),
        ..DeadLetterFilter::default()
    };
    let all = fields.optional("all", boolean).unwrap_or(false);
    let dry_run = fields.optional("dryRun", boolean).unwrap_or(false);
    let from_phase = fields.optional("fromPhase", parsed);
    let cursor = fields.optional("cursor", parsed::<Cursor>);
    let limit = fields.optional("limit", limit).unwrap_or(DEFAULT_LIMIT);
    fields.finish()?;
    if filter == DeadLetterFilter::default() && !all {
        return Err(Problem::invalid(
            "missing",
            "",
            "give a filter (reason, agendaId, from, to), or all: true for everything that is open",
        ));
    }
    Ok(ReplayMany { filter, from_phase, cursor, limit, dry_run })
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that a field's reader has")]
fn boolean(value: Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("has to be true or false, not {}", kind_of(&value)))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that a field's reader has")]
fn limit(value: Value) -> Result<usize, String> {
    // For JSON Schema 1.0 is a whole number, too.
    let number = value.as_f64().filter(|number| number.fract() == 0.0).and_then(|number| format!("{number:.0}").parse().ok());
    number.filter(|number| (1..=MAX_LIMIT).contains(number)).ok_or_else(|| format!("has to be a number from 1 to {MAX_LIMIT}"))
}

/// Put back into the queue whatever matches, newest first and one by one.
///
/// A call looks at no more than `limit` dead letters and for no more than a few seconds; `nextCursor` says where to go on.
#[utoipa::path(
    post,
    path = "/api/dead-letters/replay",
    tag = "operation",
    operation_id = "replayDeadLetters",
    request_body(content = ReplayManyRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "What was replayed, and what was skipped and why.", body = ReplaySummary),
        (status = 400, description = "Not valid, or neither a filter nor all.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn replay_many(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    JsonBody(body): JsonBody,
) -> Result<Json<ReplaySummary>, Problem> {
    let ask = read(body)?;
    let replayed = api.within_patience(api.engine.replay_many(&ask, &Api::author(&identity, request_id))).await?;
    Ok(Json(ReplaySummary::of(replayed, ask.dry_run)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_or_all_is_needed() {
        for good in [
            json!({ "all": true }),
            json!({ "reason": "internal" }),
            json!({ "agendaId": "42", "limit": 1000 }),
            json!({ "all": true, "limit": 1.0 }),
            json!({ "to": "2026-11-30T12:00:00Z" }),
        ] {
            assert!(read(good.clone()).is_ok(), "{good}");
        }
        for bad in [
            json!({}),
            json!({ "all": false }),
            json!({ "dryRun": true }),
            json!({ "fromPhase": "MERGE" }),
            json!({ "all": 1 }),
            json!({ "reason": "made-up" }),
            json!({ "all": true, "limit": 0 }),
            json!({ "all": true, "limit": 1001 }),
            json!({ "all": true, "limit": 1.5 }),
            json!({ "all": true, "limit": -1 }),
            json!({ "all": true, "cursor": "x" }),
            json!({ "all": true, "agenda": "42" }),
            json!([]),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
