//! The configured callers: names a request by what it shows, and says which roles that gives.
//!
//! A key proves a name, and so does a configured network together with its User-Agent. `X-Caller` and the product in `User-Agent` only claim one: good for
//! logs and counts, never for rights. Keys are stored hashed and compared in constant time.

use super::{Network, Roles};
use crate::{
    base::config::{CallerConfig, Config, Role},
    domain::{
        caller::{Caller, Proof},
        time::Timestamp,
    },
};
use sha2::{Digest as _, Sha256};
use std::{net::IpAddr, sync::Arc};

/// What a request shows of its sender.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'r> {
    pub address: IpAddr,
    /// The key of `Authorization: Bearer KEY`.
    pub key: Option<&'r str>,
    pub x_caller: Option<&'r str>,
    pub user_agent: Option<&'r str>,
}

/// How a request stands with keys; decides between 401 and 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShown {
    None,
    Good,
    Wrong,
}

/// Who calls, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub caller: Caller,
    pub roles: Roles,
    pub key: KeyShown,
    pub address: IpAddr,
    pub user_agent: String,
    /// Configured as one that does not call any more.
    pub retired: bool,
    /// From then on v1 is closed to this caller.
    pub cut_off: Option<Timestamp>,
}

/// A caller as configured, for the ledger's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured<'c> {
    pub name: &'c str,
    /// It may call v1 or submit tasks: v1's removal waits until it has moved. Those that only look or operate have nothing to move.
    pub moves: bool,
    pub retired: bool,
    pub cut_off: Option<Timestamp>,
}

/// The longest User-Agent that is kept.
const MAX_USER_AGENT_BYTES: usize = 256;

#[derive(Debug)]
struct Known {
    name: String,
    roles: Roles,
    key_sha256: Option<Vec<u8>>,
    networks: Vec<Network>,
    user_agent: Option<String>,
    retired: bool,
    cut_off: Option<Timestamp>,
}

/// The configured callers; cheap to clone.
#[derive(Debug, Clone)]
pub struct Callers {
    known: Arc<[Known]>,
    trusted_proxies: Arc<[Network]>,
    unproved: Roles,
    closed: bool,
}

impl Callers {
    /// # Errors
    /// When a network, a proxy or a key's hash is not one.
    pub fn new(config: &Config) -> Result<Self, String> {
        let known = config.callers.iter().map(Known::new).collect::<Result<Vec<_>, _>>()?;
        let trusted_proxies = networks(&config.http.trusted_proxies).map_err(|error| format!("http.trusted_proxies: {error}"))?;
        let closed = !known.is_empty() && !config.auth.disabled;
        let unproved = if closed { Roles::of(&config.auth.anonymous_roles) } else { Roles::ALL };
        Ok(Self { known: known.into(), trusted_proxies: trusted_proxies.into(), unproved, closed })
    }

    /// Whether rights depend on proof; otherwise everyone who can connect may do everything.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The configured names, for metric labels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|known| known.name.as_str())
    }

    /// What the ledger needs to know of each.
    pub fn configured(&self) -> impl Iterator<Item = Configured<'_>> {
        let moving = Roles::of(&[Role::Legacy, Role::Submit]);
        self.known.iter().map(move |known| Configured {
            name: &known.name,
            moves: known.roles.meets(moving),
            retired: known.retired,
            cut_off: known.cut_off,
        })
    }

    /// The name as a metric label: a configured one, or `other`.
    #[must_use]
    pub fn label<'n>(&'n self, name: &'n str) -> &'n str {
        if self.names().any(|known| known == name) { name } else { "other" }
    }

    /// The client's address: the peer's, or, behind trusted proxies, the last address in `X-Forwarded-For` that is not a trusted proxy's.
    #[must_use]
    pub fn client_address(&self, peer: IpAddr, forwarded_for: &[&str]) -> IpAddr {
        let trusted = |address: IpAddr| self.trusted_proxies.iter().any(|network| network.contains(address));
        let mut client = peer.to_canonical();
        let hops = forwarded_for.iter().rev().flat_map(|header| header.rsplit(','));
        for hop in hops {
            if !trusted(client) {
                break;
            }
            // What follows a malformed entry was written by someone who is not trusted.
            let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
            client = address.to_canonical();
        }
        client
    }

    /// Names the sender of a request.
    #[must_use]
    pub fn identify(&self, evidence: Evidence<'_>) -> Identity {
        let user_agent = evidence.user_agent.unwrap_or_default();
        let by_key = evidence.key.map(|key| self.by_key(key));
        let key = match by_key {
            None => KeyShown::None,
            Some(None) => KeyShown::Wrong,
            Some(Some(_)) => KeyShown::Good,
        };
        let proved = by_key.flatten().or_else(|| self.known.iter().find(|known| known.calls_from(evidence.address, user_agent)));
        let (caller, roles) = match proved {
            Some(known) => {
                let roles = if self.closed { known.rights() } else { Roles::ALL };
                (Caller { name: known.name.clone(), proof: Proof::Proved }, roles)
            }
            None => (self.claimed(evidence.x_caller, user_agent), self.unproved),
        };
        let mut user_agent = user_agent.to_owned();
        user_agent.truncate(user_agent.floor_char_boundary(MAX_USER_AGENT_BYTES));
        Identity {
            caller,
            roles,
            key,
            address: evidence.address,
            user_agent,
            retired: proved.is_some_and(|known| known.retired),
            cut_off: proved.and_then(|known| known.cut_off),
        }
    }

    /// The name that a call only says. One that is configured is marked: the ledger, task lists and owed answers must not take whoever says a name for who has it.
    fn claimed(&self, x_caller: Option<&str>, user_agent: &str) -> Caller {
        let caller = Caller::claimed(x_caller.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| product(user_agent)));
        if self.names().any(|known| known == caller.name) {
            return Caller { name: format!("{} (claimed)", caller.name), proof: Proof::Claimed };
        }
        caller
    }

    /// Looks at every stored hash, so that the time taken tells nothing about which one came close.
    fn by_key(&self, key: &str) -> Option<&Known> {
        let hash = Sha256::digest(key.as_bytes());
        self.known.iter().fold(None, |found, known| match &known.key_sha256 {
            Some(stored) if equal_in_constant_time(stored, &hash) => Some(known),
            _ => found,
        })
    }
}

impl Known {
    fn new(config: &CallerConfig) -> Result<Self, String> {
        let of = |error: String| format!("callers.{}: {error}", config.name);
        let key_sha256 = config
            .key_sha256
            .as_deref()
            .map(|hex| bytes_of_hex(hex).filter(|bytes| bytes.len() == 32).ok_or_else(|| of("key_sha256 is not 64 hex digits".to_owned())))
            .transpose()?;
        Ok(Self {
            name: config.name.clone(),
            roles: Roles::of(&config.roles),
            key_sha256,
            networks: networks(&config.networks).map_err(of)?,
            user_agent: config.user_agent.clone(),
            retired: config.retired,
            cut_off: config.cut_off,
        })
    }

    fn rights(&self) -> Roles {
        if self.retired { Roles::NONE } else { self.roles }
    }

    /// A network proves a name only together with a User-Agent: many services share a network.
    fn calls_from(&self, address: IpAddr, user_agent: &str) -> bool {
        self.user_agent.as_deref().is_some_and(|wanted| !wanted.is_empty() && user_agent.starts_with(wanted))
            && self.networks.iter().any(|network| network.contains(address))
    }
}

fn networks(texts: &[String]) -> Result<Vec<Network>, String> {
    texts.iter().map(|text| text.parse().map_err(|error: super::network::InvalidNetwork| error.to_string())).collect()
}

/// The product in a User-Agent: `Java` of `Java/17.0.2`.
fn product(user_agent: &str) -> &str {
    user_agent.split(['/', ' ']).next().unwrap_or_default()
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<Vec<_>>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Takes as long whatever differs.
fn equal_in_constant_time(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && std::hint::black_box(one.iter().zip(two).fold(0, |difference, (a, b)| difference | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers(closed: bool) -> Callers {
        let agenda = CallerConfig {
            name: "agenda".to_owned(),
            roles: vec![Role::Legacy],
            networks: vec!["10.0.0.0/8".to_owned()],
            user_agent: Some("Java".to_owned()),
            ..CallerConfig::default()
        };
        let portal = CallerConfig {
            name: "portal".to_owned(),
            roles: vec![Role::Submit, Role::Read],
            // SHA-256 of "secret".
            key_sha256: Some("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".to_owned()),
            ..CallerConfig::default()
        };
        Callers {
            known: vec![Known::new(&agenda).unwrap(), Known::new(&portal).unwrap()].into(),
            trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()].into(),
            unproved: if closed { Roles::NONE } else { Roles::ALL },
            closed,
        }
    }

    fn evidence<'r>(address: &str, key: Option<&'r str>, x_caller: Option<&'r str>, user_agent: Option<&'r str>) -> Evidence<'r> {
        Evidence { address: address.parse().unwrap(), key, x_caller, user_agent }
    }

    #[test]
    fn a_key_comes_before_a_network_and_a_network_before_a_claim() {
        let callers = callers(true);
        let by_key = callers.identify(evidence("10.1.1.1", Some("secret"), Some("x"), Some("Java/17")));
        assert_eq!((by_key.caller.name.as_str(), by_key.caller.proof, by_key.key), ("portal", Proof::Proved, KeyShown::Good));
        let by_network = callers.identify(evidence("10.1.1.1", None, Some("x"), Some("Java/17")));
        assert_eq!((by_network.caller.name.as_str(), by_network.caller.proof), ("agenda", Proof::Proved));
        assert!(by_network.roles.has(Role::Legacy) && !by_network.roles.has(Role::Submit));
        let claimed = callers.identify(evidence("11.1.1.1", Some("wrong"), Some("agenda"), Some("Java/17")));
        assert_eq!(
            (claimed.caller.name.as_str(), claimed.caller.proof, claimed.key),
            ("agenda (claimed)", Proof::Claimed, KeyShown::Wrong)
        );
        assert_eq!(claimed.roles, Roles::NONE);
        assert_eq!(callers.identify(evidence("11.1.1.1", None, None, Some("curl/8.5"))).caller.name, "curl");
        assert_eq!(callers.identify(evidence("11.1.1.1", None, Some(" "), Some("curl/8.5"))).caller.name, "curl", "an empty claim is none");
        assert_eq!(callers.identify(evidence("11.1.1.1", None, None, None)).caller.name, "unknown");
    }

    #[test]
    fn a_retired_caller_is_known_and_may_do_nothing() {
        let mut callers = callers(true);
        callers.known = vec![Known {
            retired: true,
            ..Known::new(&CallerConfig {
                key_sha256: Some("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".to_owned()),
                name: "old".to_owned(),
                roles: vec![Role::Admin],
                ..CallerConfig::default()
            })
            .unwrap()
        }]
        .into();
        let old = callers.identify(evidence("10.1.1.1", Some("secret"), None, None));
        assert_eq!((old.caller.name.as_str(), old.retired, old.roles, old.key), ("old", true, Roles::NONE, KeyShown::Good));
    }

    #[test]
    fn without_callers_everyone_may_do_everything() {
        assert_eq!(callers(false).identify(evidence("127.0.0.1", None, None, None)).roles, Roles::ALL);
    }

    #[test]
    fn forwarded_addresses_are_believed_of_trusted_proxies_only() {
        let callers = callers(true);
        let client = |peer: &str, forwarded: &[&str]| callers.client_address(peer.parse().unwrap(), forwarded).to_string();
        assert_eq!(client("203.0.113.5", &["10.0.0.1"]), "203.0.113.5");
        assert_eq!(client("192.0.2.1", &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(client("192.0.2.1", &["10.0.0.1, 198.51.100.7, 192.0.2.9"]), "198.51.100.7");
        assert_eq!(client("192.0.2.1", &["10.0.0.1", "198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("192.0.2.1", &["rubbish"]), "192.0.2.1");
    }

    #[test]
    fn labels_are_bounded() {
        assert_eq!(callers(true).label("agenda"), "agenda");
        assert_eq!(callers(true).label("anything"), "other");
    }
}
