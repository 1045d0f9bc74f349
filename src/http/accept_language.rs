//! The `Accept-Language` header (RFC 9110, 12.5.4): the language in which faults are told, among those that we speak.

use crate::domain::agenda::Language;
use axum::http::{HeaderMap, header};

/// The most wanted language that we speak; `None` if the client names none of them, which leaves it to the agenda.
#[must_use]
pub fn asked(headers: &HeaderMap) -> Option<Language> {
    let ranges = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut best: Option<(f32, Language)> = None;
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let tag = parts.next().unwrap_or_default().to_ascii_lowercase();
        let Some(language) = tag.split('-').next().and_then(|primary| primary.parse().ok()) else { continue };
        let weight: f32 = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        // Of equal ones the first.
        if weight > 0.0 && best.is_none_or(|(other, _)| weight > other) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_wanted_that_we_speak() {
        let asked = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            asked(&headers)
        };
        assert_eq!(asked("fr, en-GB;q=0.7, de-AT;q=0.8"), Some(Language::De));
        assert_eq!(asked("RU"), Some(Language::Ru));
        assert_eq!(asked("en, ru"), Some(Language::En));
        assert_eq!(asked("de;q=0, *"), None);
        assert_eq!(asked("fr;q=x"), None);
    }
}
