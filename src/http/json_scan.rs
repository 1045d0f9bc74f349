//! The check of JSON texts at the door, alike on both databases: depth, syntax, NUL, lone surrogates, repeated keys.
//!
//! Nothing here recurses, so no nesting can overflow the stack. PostgreSQL stores no NUL and Rust no lone surrogate; refusing both here, with the place named,
//! keeps a task from being accepted whose rows cannot be written later.

use crate::domain::failure::Fault;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::{borrow::Cow, collections::HashSet};

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 64;
/// How many faults are told at once.
const MAX_FAULTS: usize = 20;

/// Parses a JSON text that passes the checks; `root` is the pointer of the text itself.
///
/// # Errors
/// Everything that is wrong, each with its pointer.
pub fn parse(text: &str, root: &str) -> Result<Value, Vec<Fault>> {
    let whole = |code: &str, detail: String| vec![fault(code, root.to_owned(), detail)];
    if depth_exceeds(text, MAX_DEPTH) {
        return Err(whole("too-deep", format!("nested deeper than {MAX_DEPTH} levels")));
    }
    // Skips over values without recursing and without looking into strings, which `Walk` does.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| whole("not-json", format!("not valid JSON: {error}")))?;
    let faults = Walk::over(text, root);
    if !faults.is_empty() {
        return Err(faults);
    }
    serde_json::from_str(text).map_err(|error| whole("not-json", format!("not JSON that can be kept: {error}")))
}

fn fault(code: &str, pointer: String, detail: impl Into<String>) -> Fault {
    Fault { code: code.to_owned(), pointer, detail: detail.into() }
}

fn depth_exceeds(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Appends a reference token to a JSON pointer (RFC 6901).
#[must_use]
pub fn pointer_to(parent: &str, token: &str) -> String {
    format!("{parent}/{}", token.replace('~', "~0").replace('/', "~1"))
}

enum Frame {
    Object { key: Option<String>, seen: HashSet<String> },
    Array { index: usize },
}

/// A walk over a text of valid syntax that knows where it is.
struct Walk<'t> {
    root: &'t str,
    frames: Vec<Frame>,
    faults: Vec<Fault>,
}

impl<'t> Walk<'t> {
    fn over(text: &str, root: &'t str) -> Vec<Fault> {
        let mut walk = Self { root, frames: Vec::new(), faults: Vec::new() };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() && walk.faults.len() < MAX_FAULTS {
            match bytes[at] {
                b'{' => walk.frames.push(Frame::Object { key: None, seen: HashSet::new() }),
                b'[' => walk.frames.push(Frame::Array { index: 0 }),
                b'}' | b']' => {
                    walk.frames.pop();
                }
                b',' => match walk.frames.last_mut() {
                    Some(Frame::Object { key, .. }) => *key = None,
                    Some(Frame::Array { index }) => *index += 1,
                    None => {}
                },
                b'"' => {
                    let end = end_of_string(bytes, at + 1);
                    walk.string(&text[at + 1..end]);
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
        walk.faults
    }

    fn string(&mut self, raw: &str) {
        let (decoded, problem) = decode(raw);
        if let Some(Frame::Object { key: key @ None, seen }) = self.frames.last_mut() {
            let repeated = !seen.insert(decoded.clone().into_owned());
            *key = Some(decoded.into_owned());
            if repeated {
                let pointer = self.pointer();
                self.faults.push(fault("repeated-key", pointer, "this key comes twice"));
            }
        }
        if let Some((code, detail)) = problem {
            let pointer = self.pointer();
            self.faults.push(fault(code, pointer, detail));
        }
    }

    fn pointer(&self) -> String {
        self.frames.iter().fold(self.root.to_owned(), |pointer, frame| match frame {
            Frame::Object { key, .. } => pointer_to(&pointer, key.as_deref().unwrap_or_default()),
            Frame::Array { index } => format!("{pointer}/{index}"),
        })
    }
}

/// Where the string that begins at `at` (after its quote) ends: the index of its closing quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// A string's text, with U+FFFD for what cannot be stored, and what that was.
fn decode(raw: &str) -> (Cow<'_, str>, Option<(&'static str, &'static str)>) {
    if !raw.contains('\\') {
        return (Cow::Borrowed(raw), None);
    }
    let mut units: Vec<u16> = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        units.extend(rest[..at].encode_utf16());
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        let length = if escape == b'u' {
            let unit = rest.get(at + 2..at + 6).and_then(|hex| u16::from_str_radix(hex, 16).ok());
            units.push(unit.unwrap_or(0xFFFD));
            6
        } else {
            units.push(u16::from(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                other => other,
            }));
            2
        };
        rest = rest.get(at + length..).unwrap_or_default();
    }
    units.extend(rest.encode_utf16());
    let nul = units.contains(&0);
    let surrogate = char::decode_utf16(units.iter().copied()).any(|unit| unit.is_err());
    let text = String::from_utf16_lossy(&units).replace('\0', "\u{FFFD}");
    let problem = if nul {
        Some(("nul", "holds the character U+0000, which cannot be stored"))
    } else if surrogate {
        Some(("lone-surrogate", "holds half of a surrogate pair, which is not a character"))
    } else {
        None
    };
    (Cow::Owned(text), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(String, String)> {
        parse(text, "").unwrap_err().into_iter().map(|fault| (fault.code, fault.pointer)).collect()
    }

    #[test]
    fn what_cannot_be_stored_is_named_by_its_place() {
        let one = |code: &str, pointer: &str| vec![(code.to_owned(), pointer.to_owned())];
        assert_eq!(faults(r#"{"a":{"b":[1,"x\u0000"]}}"#), one("nul", "/a/b/1"));
        assert_eq!(faults(r#"{"a":{"k\u0000":1}}"#), one("nul", "/a/k\u{FFFD}"));
        assert_eq!(faults(r#"{"a/b~c":"\ud800"}"#), one("lone-surrogate", "/a~1b~0c"));
        assert_eq!(faults(r#"["\udc00\ud800"]"#), one("lone-surrogate", "/0"));
        assert_eq!(faults(r#"{"a":1,"\u0061":2}"#), one("repeated-key", "/a"));
        assert_eq!(faults(r#""\u0000""#), one("nul", ""));
        assert_eq!(faults(r#"{"a":"x\u0000","b":["ok","\ud83d"]}"#).len(), 2);
    }

    #[test]
    fn ordinary_texts_pass() {
        for text in [r#"{"a":"😀 😀 \" \\ \u0041 п","b":[{"a":1},{"a":2}]}"#, "[]", "\"\"", "0", " null ", r#"{"":{"":1}}"#] {
            let parsed = parse(text, "").unwrap();
            assert_eq!(parsed, serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn rubbish_is_refused_without_a_stack_overflow() {
        for text in ["", "{", "{\"a\"}", "nul", "{'a':1}", "\u{FEFF}{}", "[1,]", "\"\\x\"", "\"a\0\"", "1e999"] {
            assert_eq!(faults(text)[0].0, "not-json", "{text:?}");
        }
        assert_eq!(faults(&"[".repeat(10_000))[0].0, "too-deep");
        assert_eq!(faults(&format!("{}1{}", "[".repeat(65), "]".repeat(65)))[0].0, "too-deep");
        assert!(parse(&format!("{}1{}", "[".repeat(64), "]".repeat(64)), "").is_ok());
        assert!(parse(&format!("\"{}\"", "[".repeat(10_000)), "").is_ok());
    }
}
