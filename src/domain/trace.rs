//! W3C Trace Context: where in somebody's trace a piece of work happens, as the two headers say it.
//!
//! A `traceparent` that breaks the standard's rules is ignored whole, a `tracestate` that does not fit beside a good one is left out: neither is worth a refusal.

use std::str::FromStr;

/// How much of other vendors' state is carried along; the standard asks for at least this much.
const MAX_STATE_BYTES: usize = 512;

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
        if valid && complete { Ok(Self { parent: format!("00-{trace}-{span}-{flags}"), state: None }) } else { Err(NoTraceParent) }
    }
}

impl TraceContext {
    /// The beginning of a trace that nobody records: neither id is zero.
    #[must_use]
    pub fn new(trace_id: u128, span_id: u64) -> Self {
        Self { parent: format!("00-{:032x}-{:016x}-00", trace_id.max(1), span_id.max(1)), state: None }
    }

    /// With what other vendors put beside it, if that can be carried along.
    #[must_use]
    pub fn with_state(mut self, state: Option<&str>) -> Self {
        let fits = |state: &&str| !state.is_empty() && state.len() <= MAX_STATE_BYTES && state.bytes().all(|c| matches!(c, b' '..=b'~'));
        self.state = state.map(str::trim).filter(fits).map(str::to_owned);
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
    fn state_that_does_not_fit_is_left_out() {
        let with = |state: &str| GOOD.parse::<TraceContext>().unwrap().with_state(Some(state)).state().map(str::to_owned);
        assert_eq!(with("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7").as_deref(), Some("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
        for bad in ["", "a=\n1", "a=é", &format!("a={}", "x".repeat(600))] {
            assert_eq!(with(bad), None, "{bad:?}");
        }
    }
}
