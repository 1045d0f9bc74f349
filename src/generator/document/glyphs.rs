//! Characters that no bundled font can draw, or that would make a document lie about its order: each is replaced, once and in the model,
//! by a visible mark with its code point (⟨U+1F600⟩), so that every format shows the same and nothing vanishes silently.

use super::fonts;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::HashMap, sync::Mutex, sync::PoisonError};

/// Keys of the agenda whose texts are printed; all others are ids, times, addresses and words of a closed set.
const PRINTED: &[&str] = &[
    "organization",
    "name",
    "title",
    "place",
    "position",
    "absenceReason",
    "number",
    "heard",
    "text",
    "responsible",
    "words",
    "reason",
    "due",
];

/// A text in which characters were replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// JSON pointer to the text.
    pub pointer: String,
    /// Each character once, in the order in which they appear.
    pub characters: Vec<char>,
}

/// The characters of the text that cannot be printed, each once, in the order in which they appear.
#[must_use]
pub fn missing_characters(text: &str) -> Vec<char> {
    let mut missing = Vec::new();
    for character in text.chars() {
        if !is_printable(character) && !missing.contains(&character) {
            missing.push(character);
        }
    }
    missing
}

/// The visible mark that stands for a character.
#[must_use]
pub fn mark(character: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(character))
}

/// Replaces what cannot be printed in every printed text of an agenda, or of a part of one, and says where. `base` is the part's own pointer.
///
/// # Panics
/// Never for the types of the agenda: a changed text fits wherever a text was.
pub fn mark_missing<T: Serialize + DeserializeOwned>(item: &mut T, base: &str) -> Vec<Marked> {
    let mut value = serde_json::to_value(&*item).expect("the agenda's types have string keys and finite numbers only");
    let mut marked = Vec::new();
    walk(&mut value, &mut base.to_owned(), false, &mut marked);
    if !marked.is_empty() {
        *item = serde_json::from_value(value).expect("only texts were changed, into other texts");
    }
    marked
}

fn walk(value: &mut Value, pointer: &mut String, is_printed: bool, marked: &mut Vec<Marked>) {
    match value {
        Value::String(text) if is_printed => {
            let characters = missing_characters(text);
            if !characters.is_empty() {
                *text = text.chars().map(|c| if characters.contains(&c) { mark(c) } else { c.to_string() }).collect();
                marked.push(Marked { pointer: pointer.clone(), characters });
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                within(pointer, &at.to_string(), |pointer| walk(item, pointer, is_printed, marked));
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let is_printed = PRINTED.contains(&key.as_str());
                within(pointer, key, |pointer| walk(field, pointer, is_printed, marked));
            }
        }
        _ => {}
    }
}

fn within(pointer: &mut String, step: &str, visit: impl FnOnce(&mut String)) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(step);
    visit(pointer);
    pointer.truncate(length);
}

/// Whether a character may stay: white space, a soft hyphen and the joiners that scripts need, or whatever the fonts draw.
fn is_printable(character: char) -> bool {
    match character {
        // The bulk of all texts; line breaks of every kind; and what is invisible on purpose and changes no order: soft hyphen, joiners, zero-width spaces.
        ' '..='~'
        | 'А'..='я'
        | 'Ё'
        | 'ё'
        | '\n'
        | '\r'
        | '\t'
        | '\u{85}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{a0}'
        | '\u{ad}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}' => true,
        // Overrides and isolates let a text read differently from what it says; private use means nothing to anybody else.
        '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{f0000}'..='\u{10ffff}' => false,
        c => !c.is_control() && is_covered(c),
    }
}

/// Asking the fonts is slow, and texts repeat their characters.
fn is_covered(character: char) -> bool {
    static KNOWN: Mutex<Option<HashMap<char, bool>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.get_or_insert_default().entry(character).or_insert_with(|| fonts::covers(character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_fonts_have_stays() {
        assert_eq!(missing_characters("Ёё Ъъ Ћ Ғ Ү І Ї № « » — – ₽ ≤ „“ §\n\u{a0}\u{ad}шалом: שלום, café, ß"), Vec::<char>::new());
    }

    #[test]
    fn what_they_have_not_is_named_once() {
        assert_eq!(missing_characters("а😀漢😀\u{202e}\u{0}\u{e000}"), ['😀', '漢', '\u{202e}', '\0', '\u{e000}']);
    }

    #[test]
    fn marks_go_into_printed_texts_only_and_are_reported_by_pointer() {
        let mut value = json!({"id": "😀", "title": "О празднике 😀", "heard": ["да", "漢漢"], "report": {"href": "😀", "name": "漢.pdf"}});
        let marked = mark_missing(&mut value, "/questions/3");
        assert_eq!(
            value,
            json!({"id": "😀", "title": "О празднике ⟨U+1F600⟩", "heard": ["да", "⟨U+6F22⟩⟨U+6F22⟩"], "report": {"href": "😀", "name": "⟨U+6F22⟩.pdf"}})
        );
        assert_eq!(
            marked,
            [
                Marked { pointer: "/questions/3/title".to_owned(), characters: vec!['😀'] },
                Marked { pointer: "/questions/3/heard/1".to_owned(), characters: vec!['漢'] },
                Marked { pointer: "/questions/3/report/name".to_owned(), characters: vec!['漢'] },
            ]
        );
        assert_eq!(mark_missing(&mut value, ""), Vec::<Marked>::new());
    }
}
