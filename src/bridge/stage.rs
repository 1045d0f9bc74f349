//! The stage gate: to whom v1 is still open, and when.

use super::answer::Gone;
use crate::{
    base::config,
    callers::Identity,
    domain::{caller::Proof, stage::Stage, time::Timestamp},
};

/// Whether v1 is closed to the caller at `now`. Of several reasons the most lasting one is told: nobody should wait for the end of a brownout who is cut off.
#[must_use]
pub fn gate(config: &config::Legacy, identity: &Identity, now: Timestamp) -> Option<Gone> {
    match (config.stage, identity.caller.proof) {
        (Stage::M3, _) => return Some(Gone::ForAll),
        _ if identity.retired => return Some(Gone::Retired),
        _ if identity.cut_off.is_some_and(|cut_off| cut_off <= now) => return identity.cut_off.map(Gone::CutOff),
        (Stage::M2, Proof::Claimed) => return Some(Gone::Unproved),
        (Stage::M1, _) | (Stage::M2, Proof::Proved) => {}
    }
    let brownout = config.brownouts.iter().filter(|window| window.from <= now && now < window.to).max_by_key(|window| window.to);
    brownout.map(|window| Gone::Brownout { until: window.to })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::config::{Brownout, Config},
        callers::{KeyShown, Roles},
        domain::caller::Caller,
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn identity(caller: Caller) -> Identity {
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        Identity { caller, roles: Roles::ALL, key: KeyShown::None, address, user_agent: String::new(), retired: false, cut_off: None }
    }

    fn proved() -> Identity {
        identity(Caller { name: "agenda".to_owned(), proof: Proof::Proved })
    }

    #[test]
    fn each_stage_opens_v1_to_fewer() {
        let mut config = Config::default().legacy;
        let mut verdicts = |identity: &Identity| {
            [Stage::M1, Stage::M2, Stage::M3].map(|stage| {
                config.stage = stage;
                gate(&config, identity, at(0))
            })
        };
        assert_eq!(verdicts(&proved()), [None, None, Some(Gone::ForAll)]);
        assert_eq!(verdicts(&identity(Caller::claimed("agenda"))), [None, Some(Gone::Unproved), Some(Gone::ForAll)]);
        let retired = Identity { retired: true, ..proved() };
        assert_eq!(verdicts(&retired), [Some(Gone::Retired), Some(Gone::Retired), Some(Gone::ForAll)]);
    }

    #[test]
    fn a_cut_off_closes_from_its_time_on() {
        let config = Config::default().legacy;
        let cut = Identity { cut_off: Some(at(100)), ..proved() };
        assert_eq!(gate(&config, &cut, at(99)), None);
        assert_eq!(gate(&config, &cut, at(100)), Some(Gone::CutOff(at(100))));
    }

    #[test]
    fn a_brownout_closes_for_its_time_and_says_until_when() {
        let mut config = Config::default().legacy;
        config.brownouts = vec![Brownout { from: at(10), to: at(20) }, Brownout { from: at(15), to: at(30) }];
        let closed = |now| gate(&config, &proved(), at(now));
        assert_eq!(
            [9, 10, 16, 29, 30].map(closed),
            [
                None,
                Some(Gone::Brownout { until: at(20) }),
                Some(Gone::Brownout { until: at(30) }),
                Some(Gone::Brownout { until: at(30) }),
                None
            ]
        );
    }
}
