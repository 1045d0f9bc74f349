//! `Idempotency-Key`: from the header, quoted as the draft standard wants or bare as many send it, or from the body; and the fingerprint that tells a repeat
//! from another request under the same key.

use super::Problem;
use crate::{
    callers::Identity,
    domain::{ids::AgendaId, task::Kind, time::Timestamp},
    engine::Idempotency,
};
use axum::http::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const NAME: &str = "idempotency-key";
const MAX_KEY_BYTES: usize = 255;
const RULE: &str = "has to be 1 to 255 printable ASCII characters";

/// What a submission asks for, as far as its fingerprint goes.
#[derive(Debug)]
pub struct Content<'c> {
    pub kind: Kind,
    pub agenda_id: Option<&'c AgendaId>,
    pub payload: &'c Value,
    pub run_at: Option<Timestamp>,
    pub callback_url: Option<&'c str>,
    pub client_reference: Option<&'c str>,
}

/// Checks a key.
///
/// # Errors
/// When it is empty, too long or not printable.
pub fn check_key(key: String) -> Result<String, String> {
    let printable = key.bytes().all(|c| (b' '..=b'~').contains(&c));
    if printable && !key.trim().is_empty() && key.len() <= MAX_KEY_BYTES { Ok(key) } else { Err(RULE.to_owned()) }
}

/// The key of the header, if there is one.
///
/// # Errors
/// When it is no key, or two headers name different ones.
pub fn of_headers(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let refuse = |detail: &str| Problem::invalid("invalid", "/header/Idempotency-Key", detail);
    let mut found: Option<String> = None;
    for value in headers.get_all(NAME) {
        let text = value.to_str().map_err(|_| refuse(RULE))?.trim();
        let key = check_key(unquote(text).ok_or_else(|| refuse("begins with a quote but is no quoted string"))?)
            .map_err(|detail| refuse(&detail))?;
        if found.as_ref().is_some_and(|found| *found != key) {
            return Err(refuse("comes twice, with different keys"));
        }
        found = Some(key);
    }
    Ok(found)
}

/// A quoted string of RFC 8941, or the bare text.
fn unquote(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else { return Some(text.to_owned()) };
    let inner = quoted.strip_suffix('"')?;
    let (mut key, mut characters) = (String::with_capacity(inner.len()), inner.chars());
    while let Some(c) = characters.next() {
        match c {
            '\\' => key.push(characters.next().filter(|c| matches!(c, '"' | '\\'))?),
            '"' => return None,
            c => key.push(c),
        }
    }
    Some(key)
}

/// The one key of header and body, with the content's fingerprint.
///
/// # Errors
/// When header and body name different keys.
pub fn resolve(
    header: Option<String>,
    body: Option<String>,
    identity: &Identity,
    content: &Content<'_>,
) -> Result<Option<Idempotency>, Problem> {
    let key = match (header, body) {
        (Some(header), Some(body)) if header != body => {
            return Err(Problem::invalid("conflict", "/idempotencyKey", "differs from the key in the Idempotency-Key header"));
        }
        (header, body) => header.or(body),
    };
    let scope = identity.caller.idempotency_scope();
    Ok(key.map(|key| Idempotency { scope: scope.to_owned(), key, fingerprint: fingerprint(content) }))
}

/// A hash of what is asked for: the order of keys, white space and the spelling of a time do not matter.
fn fingerprint(content: &Content<'_>) -> String {
    let normal = json!([
        content.kind.as_str(),
        content.agenda_id,
        sorted(content.payload),
        content.run_at.map(Timestamp::as_micros),
        content.callback_url,
        content.client_reference,
    ]);
    Sha256::digest(normal.to_string().as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).expect("half a byte is a hex digit"));
        }
        hex
    })
}

/// The value with the keys of its objects in order. The depth is bounded at the door.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut pairs: Vec<_> = object.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            pairs.sort_by(|one, two| one.0.cmp(&two.0));
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn header(value: &str) -> Result<Option<String>, Problem> {
        of_headers(&HeaderMap::from_iter([(axum::http::HeaderName::from_static(NAME), HeaderValue::from_bytes(value.as_bytes()).unwrap())]))
    }

    #[test]
    fn keys_come_quoted_or_bare() {
        assert_eq!(header("order-42").unwrap().as_deref(), Some("order-42"));
        assert_eq!(header("\"order-42\"").unwrap().as_deref(), Some("order-42"));
        assert_eq!(header(r#""a\"b\\c""#).unwrap().as_deref(), Some(r#"a"b\c"#));
        assert_eq!(header(&"k".repeat(255)).unwrap().unwrap().len(), 255);
        for bad in ["", "\"\"", "\"a", "\"a\"b\"", "\"a\\x\"", &"k".repeat(256), "ключ", "a\tb"] {
            assert!(header(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_fingerprint_is_of_the_content_not_of_its_spelling() {
        let payload = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let of = |payload: &Value, run_at: Option<&str>| {
            let run_at = run_at.map(|text| text.parse().unwrap());
            fingerprint(&Content { kind: Kind::Demo, agenda_id: None, payload, run_at, callback_url: None, client_reference: None })
        };
        let one = of(&payload(r#"{"a":1,"b":{"c":2,"d":3}}"#), Some("2026-11-30T12:00:00Z"));
        assert_eq!(one, of(&payload(r#"{ "b": {"d":3,"c":2}, "a": 1 }"#), Some("2026-11-30T15:00:00+03:00")));
        assert_ne!(one, of(&payload(r#"{"a":2,"b":{"c":2,"d":3}}"#), Some("2026-11-30T12:00:00Z")));
        assert_ne!(one, of(&payload(r#"{"a":1,"b":{"c":2,"d":3}}"#), None));
    }
}
