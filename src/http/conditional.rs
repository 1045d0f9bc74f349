//! Entity tags: `ETag` and `If-None-Match` (RFC 9110).

use axum::http::{HeaderMap, HeaderValue, header::IF_NONE_MATCH};

/// A strong entity tag of a text that has no quotes in it.
#[must_use]
pub fn etag(text: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{text}\"")).expect("digests and numbers are header values")
}

/// What `If-None-Match` says of a representation with this tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfNoneMatch {
    Absent,
    /// The client has it already.
    Matches,
    /// The client has another one.
    Differs,
}

/// Compares weakly, as the RFC wants for `If-None-Match`.
#[must_use]
pub fn if_none_match(headers: &HeaderMap, tag: &HeaderValue) -> IfNoneMatch {
    let mut given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).peekable();
    if given.peek().is_none() {
        return IfNoneMatch::Absent;
    }
    let matches = given
        .flat_map(|value| value.split(','))
        .map(|one| one.trim().trim_start_matches("W/"))
        .any(|one| one == "*" || one.as_bytes() == tag.as_bytes());
    if matches { IfNoneMatch::Matches } else { IfNoneMatch::Differs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        let with = |value: &'static str| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(value))]);
        assert_eq!(if_none_match(&HeaderMap::new(), &etag("7")), IfNoneMatch::Absent);
        for matching in ["\"7\"", "W/\"7\"", "\"6\", \"7\"", "*"] {
            assert_eq!(if_none_match(&with(matching), &etag("7")), IfNoneMatch::Matches, "{matching}");
        }
        for other in ["\"6\"", "7", ""] {
            assert_eq!(if_none_match(&with(other), &etag("7")), IfNoneMatch::Differs, "{other}");
        }
    }
}
