//! W3C Trace Context: the caller's trace goes on in the task; a call without one begins its own.

use crate::{base::entropy::Entropy, domain::time::Timestamp};
use axum::http::HeaderMap;
use uuid::Uuid;

/// A request's place in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// 32 lower-case hex digits.
    pub trace_id: String,
    pub traceparent: String,
}

impl Trace {
    /// The trace that `traceparent` names, or a new one; an invalid header is ignored whole, as the standard says.
    #[must_use]
    pub fn of(headers: &HeaderMap, entropy: &Entropy, now: Timestamp) -> Self {
        let given = headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(Self::parse);
        given.unwrap_or_else(|| {
            let trace_id = entropy.id::<Uuid>(now).simple().to_string();
            let traceparent = format!("00-{trace_id}-{}-00", &entropy.id::<Uuid>(now).simple().to_string()[16..]);
            Self { trace_id, traceparent }
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let hex =
            |part: &str, length: usize| part.len() == length && part.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        let zero = |part: &str| part.bytes().all(|c| c == b'0');
        let mut parts = text.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let valid =
            hex(version, 2) && version != "ff" && hex(trace, 32) && !zero(trace) && hex(parent, 16) && !zero(parent) && hex(flags, 2);
        // Version 00 has exactly four parts; later ones may have more, of which only these four are kept.
        let complete = version != "00" || parts.next().is_none();
        (valid && complete).then(|| Self { trace_id: trace.to_owned(), traceparent: format!("00-{trace}-{parent}-{flags}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_parents_are_taken() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Trace::parse(good).unwrap().traceparent, good);
        for bad in [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(Trace::parse(bad), None, "{bad}");
        }
        let new = Trace::of(&HeaderMap::new(), &Entropy::seeded(1), Timestamp::default());
        assert!(Trace::parse(&new.traceparent).is_some(), "{new:?}");
    }
}
