//! How often one caller may use the task API: `auth.rate_limit`, off unless configured.
//!
//! A proved name has one account wherever it calls from; all others have one per address, an IPv6 sender one per /64, which is what a single subscriber has.
//! An account is the time by which all it was granted is paid back (the generic cell rate algorithm): one number, nothing to refill. It is kept in this
//! process: with several replicas each allows as much.
//!
//! Memory is bounded whoever calls: there are [`MOST_ACCOUNTS`] at most. When they are all taken, those that owe nothing are forgotten, which changes nothing for
//! them; when all owe, whoever is new shares one account with everyone else who is.

use super::Identity;
use crate::{
    base::{clock::Monotonic, config::Rate},
    domain::caller::Proof,
};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// About 1.5 MiB with names as long as they may be.
pub const MOST_ACCOUNTS: usize = 10_000;
/// Looking through all accounts takes a while; a flood of new addresses must not make every request do it.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// The accounts; cheap to clone.
#[derive(Debug, Clone)]
pub struct RateLimit {
    rate: Option<Rate>,
    accounts: Arc<Mutex<Accounts>>,
}

#[derive(Debug, Default)]
struct Accounts {
    paid_back_at: HashMap<Holder, Monotonic>,
    swept_at: Option<Monotonic>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    Caller(String),
    Address(IpAddr),
    Newcomers,
}

impl RateLimit {
    #[must_use]
    pub fn new(rate: Option<Rate>) -> Self {
        Self { rate, accounts: Arc::default() }
    }

    /// Grants one request.
    ///
    /// # Errors
    /// When there were too many: after how long there may be the next.
    pub fn grant(&self, identity: &Identity, now: Monotonic) -> Result<(), Duration> {
        let Some(rate) = self.rate else { return Ok(()) };
        let each = rate.per / rate.requests;
        // Held for a look-up in memory; what a panic would leave behind is still a set of accounts.
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let paid_back_at = accounts.of(Holder::of(identity), now);
        let owed = paid_back_at.since(now);
        let too_much = (owed + each).saturating_sub(rate.per);
        if !too_much.is_zero() {
            return Err(too_much);
        }
        *paid_back_at = now + owed + each;
        Ok(())
    }
}

impl Holder {
    fn of(identity: &Identity) -> Self {
        match (identity.caller.proof, identity.address) {
            (Proof::Proved, _) => Self::Caller(identity.caller.name.clone()),
            (Proof::Claimed, IpAddr::V4(address)) => Self::Address(address.into()),
            (Proof::Claimed, IpAddr::V6(address)) => Self::Address(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
        }
    }
}

impl Accounts {
    fn of(&mut self, holder: Holder, now: Monotonic) -> &mut Monotonic {
        let is_full = |accounts: &Self| accounts.paid_back_at.len() >= MOST_ACCOUNTS - 1 && !accounts.paid_back_at.contains_key(&holder);
        if is_full(self) && self.swept_at.is_none_or(|swept| now.since(swept) >= BETWEEN_SWEEPS) {
            self.paid_back_at.retain(|_, paid_back_at| *paid_back_at > now);
            self.swept_at = Some(now);
        }
        let holder = if is_full(self) { Holder::Newcomers } else { holder };
        self.paid_back_at.entry(holder).or_insert(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::clock::Clock,
        callers::{KeyShown, Roles},
        domain::{caller::Caller, time::Timestamp},
    };

    fn from(address: IpAddr, proved: Option<&str>) -> Identity {
        let proof = if proved.is_some() { Proof::Proved } else { Proof::Claimed };
        Identity {
            caller: Caller { name: proved.unwrap_or("made-up").to_owned(), proof },
            roles: Roles::ALL,
            key: KeyShown::None,
            address,
            user_agent: String::new(),
            retired: false,
            cut_off: None,
        }
    }

    fn number(n: u32) -> Identity {
        from(IpAddr::V4(n.into()), None)
    }

    const TEN_A_MINUTE: Rate = Rate { requests: 10, per: Duration::from_mins(1) };

    #[test]
    fn a_burst_passes_then_one_after_the_other() {
        let (clock, limit) = (Clock::manual(Timestamp::default()), RateLimit::new(Some(TEN_A_MINUTE)));
        let ask = || limit.grant(&number(1), clock.monotonic());
        assert!((0..10).all(|_| ask().is_ok()));
        assert_eq!(ask(), Err(Duration::from_secs(6)));
        clock.advance(Duration::from_secs(5));
        assert_eq!(ask(), Err(Duration::from_secs(1)), "what is refused is not counted");
        clock.advance(Duration::from_secs(1));
        assert_eq!((ask(), ask()), (Ok(()), Err(Duration::from_secs(6))));
        assert!(limit.grant(&number(2), clock.monotonic()).is_ok(), "another address");
        clock.advance(Duration::from_hours(1));
        assert!((0..10).all(|_| ask().is_ok()) && ask().is_err(), "a long rest saves up one burst, no more");
    }

    #[test]
    fn a_proved_name_has_one_account_and_a_network_of_ipv6_too() {
        let (now, limit) = (Clock::manual(Timestamp::default()).monotonic(), RateLimit::new(Some(Rate { requests: 1, ..TEN_A_MINUTE })));
        let (near, far) = ("2001:db8::1".parse().unwrap(), "2001:db8:0:1::1".parse().unwrap());
        assert!(limit.grant(&from(near, Some("state-machine")), now).is_ok());
        assert!(limit.grant(&from(far, Some("state-machine")), now).is_err());
        assert!(limit.grant(&from(near, None), now).is_ok());
        assert!(limit.grant(&from("2001:db8::2".parse().unwrap(), None), now).is_err());
        assert!(limit.grant(&from(far, None), now).is_ok());
        let off = RateLimit::new(None);
        assert!((0..1000).all(|_| off.grant(&number(1), now).is_ok()));
    }

    #[test]
    fn whoever_calls_the_accounts_are_bounded() {
        let (clock, limit) = (Clock::manual(Timestamp::default()), RateLimit::new(Some(TEN_A_MINUTE)));
        let accounts = || limit.accounts.lock().unwrap().paid_back_at.len();
        let granted = (0..200_000).filter(|n| limit.grant(&number(*n), clock.monotonic()).is_ok()).count();
        assert_eq!(accounts(), MOST_ACCOUNTS);
        assert_eq!(granted, MOST_ACCOUNTS - 1 + 10, "those beyond share one account");
        assert!(limit.grant(&number(0), clock.monotonic()).is_ok(), "whoever had one goes on with it");
        clock.advance(Duration::from_mins(1));
        assert!(limit.grant(&number(300_000), clock.monotonic()).is_ok());
        assert_eq!(accounts(), 1, "those who owe nothing are forgotten");
    }
}
