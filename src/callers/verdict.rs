//! How far each caller has moved, and whether v1 can be removed: pure functions of the ledger's account.
//!
//! Removable means three things at once: nobody has called v1 for the quiet period, refused calls included; the ledger has watched for at least as long; and
//! every configured caller that could call v1 or submit has used v2 or is retired. Whatever is missing is named.

use super::directory::Configured;
use crate::domain::{
    caller::{KnownCaller, Proof},
    time::Timestamp,
};
use std::{fmt::Write as _, time::Duration};

/// How far a caller has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// v1 within the quiet period, v2 never.
    LegacyOnly,
    /// v1 within the quiet period, and v2.
    Mixed,
    /// v2, and no v1 within the quiet period.
    Migrated,
    /// No v1 within the quiet period, and v2 never.
    Silent,
    /// Configured as one that does not call any more.
    Retired,
}

impl Moved {
    pub const ALL: [Self; 5] = [Self::LegacyOnly, Self::Mixed, Self::Migrated, Self::Silent, Self::Retired];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LegacyOnly => "legacy-only",
            Self::Mixed => "mixed",
            Self::Migrated => "migrated",
            Self::Silent => "silent",
            Self::Retired => "retired",
        }
    }

    /// What the ledger says of a caller; `retired` is the configuration's word.
    #[must_use]
    pub fn of(known: &KnownCaller, retired: bool, quiet_since: Timestamp) -> Self {
        let calls_v1 = known.last_v1_at.is_some_and(|at| at > quiet_since);
        match (retired, calls_v1, known.last_v2_at.is_some()) {
            (true, _, _) => Self::Retired,
            (false, true, false) => Self::LegacyOnly,
            (false, true, true) => Self::Mixed,
            (false, false, true) => Self::Migrated,
            (false, false, false) => Self::Silent,
        }
    }
}

/// Whether v1 can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub removable: bool,
    /// What is still missing, or what the verdict rests on.
    pub reason: String,
    /// Callers that have used v1 within the quiet period.
    pub active: usize,
    pub blocked: Blocked,
}

/// What v1's removal still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// v1 was called within the quiet period.
    pub by_calls: bool,
    /// The ledger has watched for less than the quiet period.
    pub by_observation: bool,
    /// A configured caller has neither moved nor retired.
    pub by_callers: bool,
}

/// Judges the account as it stands at `now`.
#[must_use]
pub fn judge<'c>(
    now: Timestamp,
    watched_since: Option<Timestamp>,
    quiet_period: Duration,
    known: &[KnownCaller],
    configured: impl Iterator<Item = Configured<'c>>,
) -> Verdict {
    let quiet_since = now - quiet_period;
    let mut missing = Vec::new();
    let watched = watched_since.map_or(Duration::ZERO, |since| now.since(since));
    if watched < quiet_period {
        missing.push(format!("observed {}", share(watched, quiet_period)));
    }
    let active: Vec<&KnownCaller> = known.iter().filter(|caller| caller.last_v1_at.is_some_and(|at| at > quiet_since)).collect();
    if let Some(last) = active.iter().max_by_key(|caller| caller.last_v1_at) {
        let at = last.last_v1_at.unwrap_or(now);
        let mut text = format!("{} called v1 at {at}", last.caller.name);
        if active.len() > 1 {
            let _ = write!(text, ", and {} more within the last {}", active.len() - 1, words(quiet_period));
        }
        missing.push(text);
    }
    let uses_v2 = |name: &str| {
        known.iter().any(|known| known.caller.name == name && known.caller.proof == Proof::Proved && known.last_v2_at.is_some())
    };
    let unmoved: Vec<&str> =
        configured.filter(|caller| caller.moves && !caller.retired && !uses_v2(caller.name)).map(|caller| caller.name).collect();
    if !unmoved.is_empty() {
        missing.push(format!("not seen on v2 and not retired: {}", unmoved.join(", ")));
    }
    let blocked = Blocked { by_calls: !active.is_empty(), by_observation: watched < quiet_period, by_callers: !unmoved.is_empty() };
    let removable = missing.is_empty();
    let reason = if removable {
        format!("no v1 call within the last {}, all of them observed; every configured caller uses v2 or is retired", words(quiet_period))
    } else {
        missing.join("; ")
    };
    Verdict { removable, reason, active: active.len(), blocked }
}

/// Such as `2 of 90 days`.
fn share(part: Duration, whole: Duration) -> String {
    let (count, unit) = unit_of(whole);
    format!("{} of {} {}", part.as_secs() / unit, count, name_of(unit, count))
}

fn words(duration: Duration) -> String {
    let (count, unit) = unit_of(duration);
    format!("{count} {}", name_of(unit, count))
}

/// In the largest unit that gives a whole number, and that unit's seconds.
fn unit_of(duration: Duration) -> (u64, u64) {
    let seconds = duration.as_secs();
    let unit = [86_400, 3_600, 60].into_iter().find(|unit| seconds >= *unit && seconds.is_multiple_of(*unit)).unwrap_or(1);
    (seconds / unit, unit)
}

fn name_of(unit: u64, count: u64) -> &'static str {
    match (unit, count) {
        (86_400, 1) => "day",
        (86_400, _) => "days",
        (3_600, 1) => "hour",
        (3_600, _) => "hours",
        (60, 1) => "minute",
        (60, _) => "minutes",
        (_, 1) => "second",
        _ => "seconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::caller::Caller;

    const DAY: i64 = 86_400_000_000;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_micros(day * DAY)
    }

    fn known(name: &str, v1: Option<i64>, v2: Option<i64>) -> KnownCaller {
        KnownCaller {
            caller: Caller { name: name.to_owned(), proof: Proof::Proved },
            first_v1_at: v1.map(day),
            last_v1_at: v1.map(day),
            first_v2_at: v2.map(day),
            last_v2_at: v2.map(day),
            last_address: None,
            last_user_agent: None,
        }
    }

    fn configured(name: &str) -> Configured<'_> {
        Configured { name, moves: true, retired: false, cut_off: None }
    }

    fn verdict(now: i64, since: i64, known: &[KnownCaller], configured: &[Configured<'_>]) -> Verdict {
        judge(day(now), Some(day(since)), Duration::from_hours(24 * 90), known, configured.iter().copied())
    }

    #[test]
    fn a_fresh_ledger_proves_nothing() {
        assert_eq!(verdict(1000, 1000, &[], &[]).reason, "observed 0 of 90 days");
        assert_eq!(verdict(1002, 1000, &[], &[]).reason, "observed 2 of 90 days");
        assert!(!verdict(1089, 1000, &[], &[]).removable);
        assert!(verdict(1090, 1000, &[], &[]).removable);
        assert!(!judge(day(1000), None, Duration::from_hours(24), &[], std::iter::empty()).removable, "the ledger could not be read");
    }

    #[test]
    fn whoever_still_calls_is_named() {
        let callers = [known("a", Some(950), Some(999)), known("b", Some(980), None), known("c", Some(800), None)];
        let verdict = verdict(1000, 100, &callers, &[]);
        assert_eq!(
            verdict,
            Verdict {
                removable: false,
                reason: "b called v1 at 1972-09-07T00:00:00Z, and 1 more within the last 90 days".to_owned(),
                active: 2,
                blocked: Blocked { by_calls: true, by_observation: false, by_callers: false },
            }
        );
    }

    #[test]
    fn every_configured_caller_has_moved_or_is_retired() {
        let callers = [known("a", Some(800), Some(999)), known("b", Some(800), None)];
        let [a, b, c] = ["a", "b", "c"].map(configured);
        assert_eq!(verdict(1000, 100, &callers, &[a, b, c]).reason, "not seen on v2 and not retired: b, c");
        let (b, c) = (Configured { retired: true, ..b }, Configured { moves: false, ..c });
        assert!(verdict(1000, 100, &callers, &[a, b, c]).removable);
        let mut claimed = known("a", None, Some(999));
        claimed.caller.proof = Proof::Claimed;
        assert!(!verdict(1000, 100, &[claimed], &[a]).removable, "whoever only says that it is a has not moved a");
    }

    #[test]
    fn a_caller_moves_step_by_step() {
        let of = |v1, v2, retired| Moved::of(&known("a", v1, v2), retired, day(910)).as_str();
        assert_eq!(of(Some(950), None, false), "legacy-only");
        assert_eq!(of(Some(950), Some(960), false), "mixed");
        assert_eq!(of(Some(900), Some(960), false), "migrated");
        assert_eq!(of(None, Some(500), false), "migrated");
        assert_eq!(of(Some(900), None, false), "silent");
        assert_eq!(of(None, None, false), "silent");
        assert_eq!(of(Some(950), None, true), "retired");
    }

    #[test]
    fn periods_are_told_in_their_own_unit() {
        let of = |seconds| words(Duration::from_secs(seconds));
        assert_eq!([of(90 * 86_400), of(86_400), of(7200), of(90), of(60)], ["90 days", "1 day", "2 hours", "90 seconds", "1 minute"]);
    }
}
