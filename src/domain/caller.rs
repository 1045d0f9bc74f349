//! Who calls, and how that is known.

use super::time::Timestamp;

/// What a name rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// A key, or a configured network together with a User-Agent.
    Proved,
    /// Only said: `X-Caller`, the product in `User-Agent`, or nothing at all.
    Claimed,
}

/// A caller's name as logged, counted and written to the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    pub name: String,
    pub proof: Proof,
}

impl Caller {
    /// The longest name kept; longer ones are cut.
    pub const MAX_NAME_BYTES: usize = 64;

    /// A claimed name, made safe for a log line and a ledger row: printable characters without line breaks, bounded; `unknown` if nothing is left.
    #[must_use]
    pub fn claimed(name: &str) -> Self {
        let mut name: String = name.trim().chars().filter(|c| !c.is_control() && *c != '\u{2028}' && *c != '\u{2029}').collect();
        name.truncate(name.floor_char_boundary(Self::MAX_NAME_BYTES));
        if name.is_empty() {
            "unknown".clone_into(&mut name);
        }
        Self { name, proof: Proof::Claimed }
    }

    /// The scope of this caller's idempotency keys: claimed names share one, since anyone may claim them.
    #[must_use]
    pub fn idempotency_scope(&self) -> &str {
        match self.proof {
            Proof::Proved => &self.name,
            Proof::Claimed => "anonymous",
        }
    }
}

/// A caller at work: what one call tells the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub caller: Caller,
    pub at: Timestamp,
    pub address: String,
    pub user_agent: String,
}

/// A caller as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCaller {
    pub caller: Caller,
    pub first_v1_at: Option<Timestamp>,
    pub last_v1_at: Option<Timestamp>,
    pub first_v2_at: Option<Timestamp>,
    pub last_v2_at: Option<Timestamp>,
    pub last_address: Option<String>,
    pub last_user_agent: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_names_cannot_break_a_log_line() {
        assert_eq!(Caller::claimed("agenda\r\nWARN forged").name, "agendaWARN forged");
        assert_eq!(Caller::claimed(" \t").name, "unknown");
        assert!(Caller::claimed(&"я".repeat(100)).name.len() <= Caller::MAX_NAME_BYTES);
    }
}
