//! From bytes to a JSON value: bounded in depth by the parser, and with lone surrogates made harmless.

use crate::{
    domain::{agenda::Language, failure::Fault},
    generator::words::Words,
};
use serde_json::Value;
use std::borrow::Cow;

const NOT_UTF8: Words = Words {
    ru: "Повестка не в кодировке UTF-8. Сохраните её в UTF-8.",
    en: "The agenda is not UTF-8 text. Save it as UTF-8.",
    de: "Die Tagesordnung ist kein UTF-8-Text. Speichern Sie sie als UTF-8.",
};
const TOO_DEEP: Words = Words {
    ru: "Повестка вложена глубже, чем допустимо (строка {line}, знак {column}). Уберите лишние скобки.",
    en: "The agenda is nested too deeply (line {line}, column {column}). Remove the needless brackets.",
    de: "Die Tagesordnung ist zu tief verschachtelt (Zeile {line}, Spalte {column}). Entfernen Sie überflüssige Klammern.",
};
const NOT_JSON: Words = Words {
    ru: "Повестка — не JSON: строка {line}, знак {column}: {reason}. Исправьте это место.",
    en: "The agenda is not JSON: line {line}, column {column}: {reason}. Correct this place.",
    de: "Die Tagesordnung ist kein JSON: Zeile {line}, Spalte {column}: {reason}. Korrigieren Sie diese Stelle.",
};

/// Parses.
///
/// # Errors
/// The one fault that stops everything: the text is no JSON.
pub fn parse(bytes: &[u8], language: Language) -> Result<Value, Fault> {
    let fault = |detail: String| Fault { code: "not-json".to_owned(), pointer: String::new(), detail };
    // Some editors begin a UTF-8 file with this mark.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if std::str::from_utf8(bytes).is_err() {
        return Err(fault(NOT_UTF8.text(language).to_owned()));
    }
    serde_json::from_slice(&without_lone_surrogates(bytes)).map_err(|error| {
        let (line, column) = (error.line().to_string(), error.column().to_string());
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default();
        let words = if reason.starts_with("recursion limit") { TOO_DEEP } else { NOT_JSON };
        fault(words.say(language, &[("line", &line), ("column", &column), ("reason", reason)]))
    })
}

/// Writes U+FFFD for every `\ud800`…`\udfff` that is not half of a pair: JSON texts may hold them, Unicode strings may not, and one broken character must not
/// make an agenda unreadable. CHECK warns of the U+FFFD.
fn without_lone_surrogates(text: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            at += 1;
            continue;
        }
        match escaped_unit(text, at) {
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(text, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                repaired.get_or_insert_with(|| text.to_vec())[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            // The character after a backslash is never a backslash of its own right.
            _ => at += 2,
        }
    }
    repaired.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The code unit of the `\uXXXX` at this place.
fn escaped_unit(text: &[u8], at: usize) -> Option<u16> {
    let escape = text.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_visible_and_pairs_stay() {
        for (text, want) in [
            (r#""\ud83d\ude00""#, "😀"),
            (r#""a\ud800b""#, "a\u{FFFD}b"),
            (r#""\udc00\ud800""#, "\u{FFFD}\u{FFFD}"),
            (r#""\ud800\ud83d\ude00""#, "\u{FFFD}😀"),
            (r#""\\ud800""#, r"\ud800"),
            (r#""\\\ud800""#, "\\\u{FFFD}"),
        ] {
            assert_eq!(parse(text.as_bytes(), Language::En), Ok(Value::from(want)), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_says_where() {
        for (bytes, want) in [
            (b"".as_slice(), "line 1, column 0"),
            (b"{\"a\":\n 1,}", "line 2, column 4"),
            (b"<html>", "line 1, column 1"),
            (b"\xff\xfe{}", "UTF-8"),
            ("[".repeat(10_000).as_bytes(), "nested too deeply"),
            (b"{\"a\":\"\\ud8", "line 1"),
        ] {
            let fault = parse(bytes, Language::En).unwrap_err();
            assert_eq!((fault.code.as_str(), fault.pointer.as_str()), ("not-json", ""));
            assert!(fault.detail.contains(want), "{}", fault.detail);
        }
        assert_eq!(parse(b"\xEF\xBB\xBF{}", Language::En), Ok(Value::from(serde_json::Map::new())));
    }
}
