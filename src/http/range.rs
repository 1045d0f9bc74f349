//! Byte ranges (RFC 9110): one range is served; several, and what is no byte range, are ignored and the whole is sent, as the RFC allows.

use std::ops::Range;

/// What a `Range` header asks of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Whole,
    Part(Range<u64>),
    /// It asks for bytes that are not there.
    Unsatisfiable,
}

/// Reads the header for a document of `size` bytes.
#[must_use]
pub fn asked(header: Option<&str>, size: u64) -> Asked {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Asked::Whole };
    let Some((first, last)) = spec.trim().split_once('-') else { return Asked::Whole };
    let range = match (first.trim(), last.trim()) {
        ("", suffix) => suffix.parse::<u64>().ok().map(|length| size.saturating_sub(length)..size),
        (first, "") => first.parse::<u64>().ok().map(|first| first..size),
        (first, last) => match (first.parse::<u64>(), last.parse::<u64>()) {
            // The last position is included; a range that ends before it begins is invalid and ignored.
            (Ok(first), Ok(last)) if first <= last => Some(first..last.saturating_add(1).min(size)),
            _ => None,
        },
    };
    match range {
        None => Asked::Whole,
        Some(range) if range.start >= range.end => Asked::Unsatisfiable,
        Some(range) => Asked::Part(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_served_and_others_are_not_minded() {
        let of = |header: &str| asked(Some(header), 10);
        assert_eq!(of("bytes=0-0"), Asked::Part(0..1));
        assert_eq!(of("bytes=2-"), Asked::Part(2..10));
        assert_eq!(of("bytes=-3"), Asked::Part(7..10));
        assert_eq!(of("bytes=-30"), Asked::Part(0..10));
        assert_eq!(of("bytes=5-500"), Asked::Part(5..10));
        for unsatisfiable in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of(unsatisfiable), Asked::Unsatisfiable, "{unsatisfiable}");
        }
        for ignored in ["bytes=0-1,3-4", "bytes=3-2", "lines=1-2", "bytes=x-y", "bytes", "bytes=99999999999999999999-"] {
            assert_eq!(of(ignored), Asked::Whole, "{ignored}");
        }
        assert_eq!(asked(None, 10), Asked::Whole);
        assert_eq!(asked(Some("bytes=0-"), 0), Asked::Unsatisfiable);
    }
}
