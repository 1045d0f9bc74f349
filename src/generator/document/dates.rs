//! Dates and times as they are printed: in the agenda's zone, or as given where it names none.

use crate::domain::time::Timestamp;
use jiff::{
    civil::{Date, DateTime},
    fmt::temporal::Pieces,
    tz::{TimeZone, TimeZoneDatabase},
};
use std::sync::LazyLock;

/// The zones that are compiled in: the machine's own might differ, and with them the bytes of a document.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone in which times are printed; `None`: each in the offset that it was given with.
#[derive(Debug, Clone)]
pub struct Zone(Option<TimeZone>);

impl Zone {
    /// An unknown name is as good as none; saying so is CHECK's part.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        Self(name.and_then(|name| ZONES.get(name).ok()))
    }

    /// Whether there is a zone to print in.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// What the clock on the wall showed; a time without an offset says just that. `None` if the text is neither.
    #[must_use]
    pub fn wall_clock(&self, text: &str) -> Option<DateTime> {
        let Ok(instant) = text.parse::<Timestamp>() else { return text.parse().ok() };
        if let Some(zone) = &self.0 {
            return Some(zone.to_datetime(instant.to_jiff()));
        }
        let offset = Pieces::parse(text).ok()?.to_numeric_offset()?;
        Some(offset.to_datetime(instant.to_jiff()))
    }
}

/// The instant to write into a document's metadata: a time without an offset is taken for UTC there.
#[must_use]
pub fn instant(text: &str) -> Option<Timestamp> {
    let local = || TimeZone::UTC.to_timestamp(text.parse().ok()?).ok()?.to_string().parse().ok();
    text.parse().ok().or_else(local)
}

/// A date written YYYY-MM-DD.
#[must_use]
pub fn date(text: &str) -> Option<Date> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_the_agendas_zone_and_else_as_given() {
        let late = "2026-11-30T22:30:00Z";
        let moscow = Zone::named(Some("Europe/Moscow")).wall_clock(late).map(|time| time.to_string());
        assert_eq!(moscow.as_deref(), Some("2026-12-01T01:30:00"));
        let given = Zone::named(None).wall_clock("2026-11-30T10:05:00+03:00").map(|time| time.to_string());
        assert_eq!(given.as_deref(), Some("2026-11-30T10:05:00"));
        let utc = Zone::named(None).wall_clock(late).map(|time| time.to_string());
        assert_eq!(utc.as_deref(), Some("2026-11-30T22:30:00"));
        let local = Zone::named(None).wall_clock("2026-11-30T10:05:00").map(|time| time.to_string());
        assert_eq!(local.as_deref(), Some("2026-11-30T10:05:00"));
        assert_eq!(instant("2026-11-30T10:05:00"), instant("2026-11-30T10:05:00Z"));
    }

    #[test]
    fn what_is_no_time_or_zone_is_said_to_be_none() {
        assert!(!Zone::named(Some("Europe/Приозёрск")).is_known());
        assert_eq!(Zone::named(None).wall_clock("вчера"), None);
        assert_eq!(date("2026-02-30"), None);
    }
}
