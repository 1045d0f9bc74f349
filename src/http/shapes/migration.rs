//! How far the move off v1 has come, as `GET /api/migration` tells it.

use crate::{
    base::config,
    callers::report::{CallerReport, Report},
    domain::{caller::Proof, stage::Stage, time::Timestamp},
    store::legacy_call::DayCount,
};
use serde::Serialize;
use utoipa::ToSchema;

/// How far the move off v1 has come.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "stage": "M1", "deprecatedSince": "2026-01-01T00:00:00Z", "sunset": "2027-09-30T23:59:59Z",
    "brownouts": [{ "from": "2027-03-01T09:00:00Z", "to": "2027-03-01T10:00:00Z", "active": false }],
    "removable": false, "reason": "observed 2 of 90 days; agenda-state-machine called v1 at 2026-11-30T12:00:00Z",
    "watchedSince": "2026-11-28T09:00:00Z", "observedSeconds": 183_600, "quietPeriodSeconds": 7_776_000,
    "callers": [{
        "name": "agenda-state-machine", "proof": "proved", "configured": true, "state": "legacy-only", "lastAddress": "10.20.0.7", "lastUserAgent": "Java/21.0.2",
        "firstV1At": "2026-11-28T09:12:00Z", "lastV1At": "2026-11-30T12:00:00Z", "firstV2At": null, "lastV2At": null, "cutOff": null,
        "v1Calls": [{ "day": "2026-11-30", "outcome": "completed", "calls": 3 }, { "day": "2026-11-30", "outcome": "received", "calls": 3 }]
    }]
}))]
pub struct Migration {
    /// M1, M2 or M3.
    #[schema(value_type = String, example = "M1")]
    pub stage: Stage,
    #[schema(value_type = String, format = DateTime)]
    pub deprecated_since: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub sunset: Option<Timestamp>,
    pub brownouts: Vec<BrownoutShape>,
    /// Whether v1 can be removed.
    pub removable: bool,
    /// What is still missing, or what the verdict rests on.
    pub reason: String,
    /// Since when calls are noted; null while the ledger has not begun.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub watched_since: Option<Timestamp>,
    pub observed_seconds: u64,
    pub quiet_period_seconds: u64,
    /// Whoever called v1 last first.
    pub callers: Vec<CallerShape>,
}

/// A window in which v1 answers 410.
#[derive(Debug, Serialize, ToSchema)]
pub struct BrownoutShape {
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// It is on now.
    pub active: bool,
}

/// One caller, as the ledger knows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallerShape {
    pub name: String,
    /// `proved` by key or by network and User-Agent, or only `claimed`.
    #[schema(example = "proved")]
    pub proof: &'static str,
    pub configured: bool,
    /// legacy-only, mixed, migrated, silent or retired.
    #[schema(example = "legacy-only")]
    pub state: &'static str,
    #[schema(required)]
    pub last_address: Option<String>,
    #[schema(required)]
    pub last_user_agent: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub first_v1_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub last_v1_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub first_v2_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub last_v2_at: Option<Timestamp>,
    /// From then on v1 answers it 410.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub cut_off: Option<Timestamp>,
    /// Within the quiet period, newest day first.
    pub v1_calls: Vec<CallsShape>,
}

/// A day's calls (UTC) with one outcome; `received` counts all of them as they come in.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallsShape {
    #[schema(format = Date)]
    pub day: String,
    #[schema(example = "completed")]
    pub outcome: String,
    pub calls: i64,
}

impl Migration {
    #[must_use]
    pub fn of(legacy: &config::Legacy, report: Report, now: Timestamp) -> Self {
        let brownout =
            |window: &config::Brownout| BrownoutShape { from: window.from, to: window.to, active: window.from <= now && now < window.to };
        Self {
            stage: legacy.stage,
            deprecated_since: legacy.deprecated_since,
            sunset: legacy.sunset,
            brownouts: legacy.brownouts.iter().map(brownout).collect(),
            removable: report.verdict.removable,
            reason: report.verdict.reason,
            watched_since: report.watched_since,
            observed_seconds: report.watched_since.map_or(0, |since| now.since(since).as_secs()),
            quiet_period_seconds: report.quiet_period.as_secs(),
            callers: report.callers.into_iter().map(CallerShape::from).collect(),
        }
    }
}

impl From<CallerReport> for CallerShape {
    fn from(report: CallerReport) -> Self {
        let CallerReport { known, configured, moved, cut_off, counts } = report;
        Self {
            name: known.caller.name,
            proof: match known.caller.proof {
                Proof::Proved => "proved",
                Proof::Claimed => "claimed",
            },
            configured,
            state: moved.as_str(),
            last_address: known.last_address,
            last_user_agent: known.last_user_agent,
            first_v1_at: known.first_v1_at,
            last_v1_at: known.last_v1_at,
            first_v2_at: known.first_v2_at,
            last_v2_at: known.last_v2_at,
            cut_off,
            v1_calls: counts.into_iter().map(CallsShape::from).collect(),
        }
    }
}

impl From<DayCount> for CallsShape {
    fn from(count: DayCount) -> Self {
        let DayCount { day, outcome, calls, .. } = count;
        Self { day, outcome, calls }
    }
}
