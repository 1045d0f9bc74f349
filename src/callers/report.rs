//! The ledger's account as people read it: each caller with how far it has moved, and the verdict on v1.

use super::{
    Callers,
    verdict::{self, Moved, Verdict},
};
use crate::{
    domain::{
        caller::{Caller, KnownCaller, Proof},
        time::Timestamp,
    },
    store::legacy_call::DayCount,
};
use std::{collections::HashMap, time::Duration};

/// What the database knows.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Since when calls are noted.
    pub watched_since: Option<Timestamp>,
    pub known: Vec<KnownCaller>,
    /// Newest day first.
    pub counts: Vec<DayCount>,
}

/// The account, judged.
#[derive(Debug, Clone)]
pub struct Report {
    pub watched_since: Option<Timestamp>,
    pub quiet_period: Duration,
    pub verdict: Verdict,
    pub callers: Vec<CallerReport>,
}

/// One caller.
#[derive(Debug, Clone)]
pub struct CallerReport {
    pub known: KnownCaller,
    pub configured: bool,
    pub moved: Moved,
    pub cut_off: Option<Timestamp>,
    /// v1 calls by day and outcome, newest day first.
    pub counts: Vec<DayCount>,
}

impl Report {
    /// Judges `account` at `now`. Configured callers that were never seen are in it, too.
    #[must_use]
    pub fn of(account: Account, callers: &Callers, quiet_period: Duration, now: Timestamp) -> Self {
        let Account { watched_since, mut known, counts } = account;
        let verdict = verdict::judge(now, watched_since, quiet_period, &known, callers.configured());
        for configured in callers.configured() {
            if !known.iter().any(|known| known.caller.name == configured.name) {
                known.push(never_seen(configured.name));
            }
        }
        let mut by_caller: HashMap<String, Vec<DayCount>> = HashMap::new();
        for count in counts {
            by_caller.entry(count.caller.clone()).or_default().push(count);
        }
        let callers = known.into_iter().map(|known| {
            let configured = callers.configured().find(|configured| configured.name == known.caller.name);
            CallerReport {
                configured: configured.is_some(),
                moved: Moved::of(&known, configured.is_some_and(|configured| configured.retired), now - quiet_period),
                cut_off: configured.and_then(|configured| configured.cut_off),
                counts: by_caller.remove(&known.caller.name).unwrap_or_default(),
                known,
            }
        });
        Self { watched_since, quiet_period, verdict, callers: callers.collect() }
    }
}

fn never_seen(name: &str) -> KnownCaller {
    KnownCaller {
        caller: Caller { name: name.to_owned(), proof: Proof::Proved },
        first_v1_at: None,
        last_v1_at: None,
        first_v2_at: None,
        last_v2_at: None,
        last_address: None,
        last_user_agent: None,
    }
}
