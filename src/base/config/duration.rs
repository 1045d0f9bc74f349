//! Durations as people write them: `500ms`, `30s`, `12m`, `1h 30m`, `90d`.

use super::text;
use std::time::Duration;

const FORM: &str = "a duration, written like 500ms, 30s, 12m, 1h or 90d";

pub(super) fn parse(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.parse().ok()?;
    // Months and years are refused: nobody can say how long they are.
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}

/// The same way back, for messages.
pub(super) fn words(duration: Duration) -> String {
    jiff::SignedDuration::try_from(duration).map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    text::deserialize(deserializer, FORM, parse)
}

/// The same for a key that may be left out.
pub(super) mod optional {
    use serde::Deserialize;
    use std::time::Duration;

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Written(#[serde(deserialize_with = "super::deserialize")] Duration);

    pub(in super::super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Written>::deserialize(deserializer)?.map(|written| written.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_write_them() {
        for (text, seconds) in [("500ms", 0.5), ("30s", 30.0), ("12m", 720.0), ("1h 30m", 5400.0), ("90d", 7_776_000.0), ("0s", 0.0)] {
            assert_eq!(parse(text).map(|duration| duration.as_secs_f64()), Some(seconds), "{text}");
        }
        for text in ["", "12", "-5s", "1 month", "soon", "1y"] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn words_can_be_read_back() {
        for text in ["500ms", "12m", "1h 30m"] {
            assert_eq!(words(parse(text).unwrap()), text);
        }
    }
}
