//! W3C Trace Context: where in somebody's trace a piece of work happens, as the two headers say it.
//!
//! A `traceparent` that breaks the standard's rules is ignored whole; of a `tracestate` the members that break them, or do not fit, are left out. Neither is worth a
//! refusal.

use std::{collections::HashSet, str::FromStr};

/// How much of other vendors' state is carried along; the standard asks for at least this much, and for no more than so many members.
const MAX_STATE_BYTES: usize = 512;
const MAX_MEMBERS: usize = 32;
/// Of a state that is too long, members over this length go first.
const LONG_MEMBER_BYTES: usize = 128;
/// Keys and values may be this long.
const MAX_PART_BYTES: usize = 256;
/// Recorded, and a trace id made at random; the standard keeps the other six for later and has them set to 0.
const KNOWN_FLAGS: u8 = 0b11;

/// A place in a trace; both texts are valid header values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

/// It is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no traceparent")]
pub struct NoTraceParent;

impl FromStr for TraceContext {
    type Err = NoTraceParent;

    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let hex =
            |part: &str, length: usize| part.len() == length && part.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        let zero = |part: &str| part.bytes().all(|c| c == b'0');
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(NoTraceParent);
        let (version, trace, span, flags) = (next()?, next()?, next()?, next()?);
        let valid = hex(version, 2) && version != "ff" && hex(trace, 32) && !zero(trace) && hex(span, 16) && !zero(span) && hex(flags, 2);
        // Version 00 has exactly four parts; later ones may have more, of which only these four are kept.
        let complete = version != "00" || parts.next().is_none();
        if !(valid && complete) {
            return Err(NoTraceParent);
        }
        let flags = u8::from_str_radix(flags, 16).map_err(|_| NoTraceParent)? & KNOWN_FLAGS;
        Ok(Self { parent: format!("00-{trace}-{span}-{flags:02x}"), state: None })
    }
}

impl TraceContext {
    /// The beginning of a trace that nobody records: neither id is zero.
    #[must_use]
    pub fn new(trace_id: u128, span_id: u64) -> Self {
        Self { parent: format!("00-{:032x}-{:016x}-00", trace_id.max(1), span_id.max(1)), state: None }
    }

    /// With what other vendors put beside it, as far as it can be carried along.
    #[must_use]
    pub fn with_state(mut self, state: Option<&str>) -> Self {
        let mut keys = HashSet::new();
        let members = state.unwrap_or_default().split(',').map(str::trim);
        let mut members: Vec<&str> =
            members.filter(|member| key_of(member).is_some_and(|key| keys.insert(key))).take(MAX_MEMBERS).collect();
        let fits = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>() <= MAX_STATE_BYTES + 1;
        if !fits(&members) {
            members.retain(|member| member.len() <= LONG_MEMBER_BYTES);
        }
        // The newest stand first.
        while !fits(&members) {
            members.pop();
        }
        self.state = Some(members.join(",")).filter(|state| !state.is_empty());
        self
    }

    /// The `traceparent` header.
    #[must_use]
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The `tracestate` header, if there is one.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// 32 lower-case hex digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }

    /// 16 lower-case hex digits: the span under which the work happens.
    #[must_use]
    pub fn span_id(&self) -> &str {
        &self.parent[36..52]
    }

    /// Two hex digits; the lowest bit says that the trace is recorded.
    #[must_use]
    pub fn flags(&self) -> u8 {
        u8::from_str_radix(&self.parent[53..55], 16).expect("two hex digits, as it was made or read")
    }
}

/// The key of a member of `tracestate` that keeps to the rules.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let sign = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_-*/@".contains(&c);
    let key_is_good = key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && key.bytes().all(sign);
    let value_is_good = !value.is_empty() && value.bytes().all(|c| matches!(c, b' '..=b'~') && c != b'=');
    (key_is_good && value_is_good && key.len() <= MAX_PART_BYTES && value.len() <= MAX_PART_BYTES).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_valid_parents_are_taken() {
        let good: TraceContext = GOOD.parse().unwrap();
        assert_eq!((good.parent(), good.trace_id(), good.span_id(), good.flags()), (GOOD, &GOOD[3..35], "00f067aa0ba902b7", 1));
        let later: TraceContext = format!("cc{}-what-will-be", &GOOD[2..]).parse().unwrap();
        assert_eq!(later, good, "a later version may have more parts");
        let flags = |flags: &str| format!("{}{flags}", &GOOD[..53]).parse::<TraceContext>().unwrap().flags();
        assert_eq!((flags("00"), flags("03"), flags("fe")), (0, 3, 2), "flags that nobody knows are not handed on");
        for bad in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(bad.parse::<TraceContext>(), Err(NoTraceParent), "{bad}");
        }
        let new = TraceContext::new(7, 0);
        assert_eq!(new.parent().parse(), Ok(new.clone()), "{new:?}");
    }

    #[test]
    fn state_that_breaks_the_rules_or_does_not_fit_is_left_out() {
        let with = |state: &str| GOOD.parse::<TraceContext>().unwrap().with_state(Some(state)).state().map(str::to_owned);
        for good in ["congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "1a-2@b/*_=!~ x"] {
            assert_eq!(with(good).as_deref(), Some(good));
        }
        for bad in ["", ",", "a", "a=", "=1", "A=1", "a b=1", "a=1=2", "a=\n1", "a=é"] {
            assert_eq!(with(bad), None, "{bad:?}");
        }
        assert_eq!(with(" a=1 ,,b=2,a=3,B=4").as_deref(), Some("a=1,b=2"), "the first of a key counts");
        let long = |key: &str, length: usize| format!("{key}={}", "x".repeat(length - 2));
        let (a, b, c) = (long("a", 200), long("b", 128), long("c", 250));
        assert_eq!(with(&format!("{a},{b},{c}")), Some(b.clone()), "the long ones go first");
        let many: Vec<String> = ('a'..='e').map(|key| long(&key.to_string(), 120)).collect();
        assert_eq!(with(&many.join(",")), Some(many[..4].join(",")), "then those at the end");
        let small: Vec<String> = (0..40).map(|key| format!("k{key}=1")).collect();
        assert_eq!(with(&small.join(",")), Some(small[..32].join(",")));
    }
}
