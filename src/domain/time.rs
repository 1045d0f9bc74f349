//! One instant type for the whole crate: microseconds since the Unix epoch, as both databases store it.
//!
//! Text is RFC 3339 and always carries an offset when it comes in and `Z` when it goes out. A time without an offset is refused:
//! nobody can tell which zone was meant.

use jiff::fmt::temporal::{DateTimeParser, Pieces};
use serde::{Deserialize, Serialize};
use std::{fmt, ops, str::FromStr, time::Duration};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Why a text is not a [`Timestamp`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// The earliest and latest instants accepted from outside: years 1 to 9999, so that they print as four digits.
    const LIMITS_US: ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    #[must_use]
    pub fn to_jiff(self) -> jiff::Timestamp {
        let micros = self.0.clamp(*Self::LIMITS_US.start(), *Self::LIMITS_US.end());
        jiff::Timestamp::from_microsecond(micros).expect("clamped to years 1 to 9999, which jiff can hold")
    }
}

impl ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_jiff().fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// RFC 3339 with `Z` or a numeric offset; lower-case `t`/`z` and a space for `T` are accepted, zone names in brackets are not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || {
            InvalidTimestamp(format!(
                "{text:?} is not a time with an offset; write it like 2026-11-30T12:00:00Z or 2026-11-30T15:00:00+03:00"
            ))
        };
        let pieces = Pieces::parse(text).map_err(|_| refuse())?;
        // jiff reads offsets up to 25:59; RFC 3339 ends at 23:59.
        let offset_fits = pieces.offset().is_some_and(|offset| offset.to_numeric_offset().seconds().abs() < 24 * 3600);
        if pieces.time().is_none() || !offset_fits || pieces.time_zone_annotation().is_some() {
            return Err(refuse());
        }
        let time = DateTimeParser::new().parse_timestamp(text).map_err(|_| refuse())?;
        let micros = time.as_microsecond();
        if Self::LIMITS_US.contains(&micros) { Ok(Self(micros)) } else { Err(refuse()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instant_in_many_spellings() {
        let want = Timestamp::from_micros(1_796_040_000_000_000);
        for text in [
            "2026-11-30T12:00:00Z",
            "2026-11-30t12:00:00z",
            "2026-11-30 12:00:00Z",
            "2026-11-30T15:00:00+03:00",
            "2026-11-30T07:00:00-05:00",
            "2026-11-30T12:00:00.000Z",
            "2026-11-30T12:00:00.000000Z",
            "2026-11-30T12:00:00.000000000Z",
        ] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
        assert_eq!(want.to_string(), "2026-11-30T12:00:00Z");
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        for text in [
            "2026-10-25T02:30:00",
            "2026-10-25",
            "1796040000",
            "2026-10-25T02:30:00+25:00",
            "2026-10-25T02:30:00+03:00[Europe/Moscow]",
            "tomorrow",
            "",
            "\0",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
        }
    }
}
