//! Reads one typed value out of JSON and says what is wrong with it: a code, a JSON pointer, and words for the secretary.
//!
//! Unknown fields are all found at once; of other faults the first in each value, because what follows is often its consequence.

use crate::{
    domain::{agenda::Language, failure::Fault},
    generator::words::{Words, short},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

const MISSING: Words = Words {
    ru: "Нет обязательного поля «{name}». Добавьте его.",
    en: "The field “{name}” is missing. Add it.",
    de: "Das Feld „{name}“ fehlt. Ergänzen Sie es.",
};
const UNKNOWN: Words = Words {
    ru: "Поле «{name}» неизвестно. Удалите его или исправьте имя.",
    en: "The field “{name}” is unknown. Remove it or correct its name.",
    de: "Das Feld „{name}“ ist unbekannt. Entfernen Sie es oder berichtigen Sie den Namen.",
};
const MISSPELT: Words = Words {
    ru: "Поле «{name}» неизвестно; вероятно, имелось в виду «{nearest}». Исправьте имя.",
    en: "The field “{name}” is unknown; “{nearest}” may be meant. Correct its name.",
    de: "Das Feld „{name}“ ist unbekannt; gemeint ist wohl „{nearest}“. Berichtigen Sie den Namen.",
};
const WRONG_WORD: Words = Words {
    ru: "Значение «{name}» недопустимо; допустимы: {allowed}. Исправьте его.",
    en: "The value “{name}” is not allowed; allowed are {allowed}. Correct it.",
    de: "Der Wert „{name}“ ist nicht zulässig; zulässig sind {allowed}. Berichtigen Sie ihn.",
};
const WRONG_TYPE: Words = Words {
    ru: "Здесь {got}, а требуется {wanted}. Исправьте значение.",
    en: "Here is {got} where {wanted} is needed. Correct the value.",
    de: "Hier steht {got}, nötig ist {wanted}. Berichtigen Sie den Wert.",
};
const OTHERWISE: Words = Words {
    ru: "Значение не читается: {reason}. Исправьте его.",
    en: "The value cannot be read: {reason}. Correct it.",
    de: "Der Wert ist nicht lesbar: {reason}. Berichtigen Sie ihn.",
};

/// How many unknown fields of one value are told.
const MAX_UNKNOWN: usize = 50;

/// Reads `value`, which lies at `pointer`. `None` if there was a fault other than unknown fields.
pub fn read<T: DeserializeOwned>(mut value: Value, pointer: &str, language: Language, faults: &mut Vec<Fault>) -> Option<T> {
    for _ in 0..MAX_UNKNOWN {
        let error = match serde_path_to_error::deserialize::<_, T>(&value) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let inside = pointer_of(error.path());
        let problem = Problem::from(error.into_inner().to_string().as_str());
        let Problem::Unknown { name, .. } = &problem else {
            faults.push(problem.fault(&format!("{pointer}{inside}"), language));
            return None;
        };
        let inside = inside.strip_suffix(&format!("/{}", escape(name))).unwrap_or(&inside).to_owned();
        let removed = value.pointer_mut(&inside).and_then(Value::as_object_mut).and_then(|object| object.shift_remove(name));

        faults.push(problem.fault(&format!("{pointer}{inside}/{}", escape(name)), language));
        removed?;
    }
    None
}

/// The fault of a field that is missing from the object at `pointer`.
#[must_use]
pub fn missing(name: &str, pointer: &str, language: Language) -> Fault {
    Problem::Missing { name: name.to_owned() }.fault(pointer, language)
}

/// What serde said, taken apart.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Missing { name: String },
    Unknown { name: String, nearest: Option<String> },
    WrongWord { name: String, allowed: String },
    WrongType { got: String, wanted: String },
    Other(String),
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
        let expected = |text: &str| text.split_once(", expected ").map(|(_, allowed)| allowed.to_owned());
        if let Some(name) = text.strip_prefix("missing field ").and_then(quoted) {
            return Self::Missing { name };
        }
        if let Some(rest) = text.strip_prefix("unknown field ")
            && let Some(name) = quoted(rest)
        {
            let nearest = expected(rest).and_then(|allowed| nearest(&name, allowed.split('`').skip(1).step_by(2)));
            return Self::Unknown { name, nearest };
        }
        if let Some(rest) = text.strip_prefix("unknown variant ")
            && let (Some(name), Some(allowed)) = (quoted(rest), expected(rest))
        {
            return Self::WrongWord { name, allowed: allowed.replace("one of ", "").replace('`', "") };
        }
        if let Some(rest) = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "))
            && let Some((got, wanted)) = rest.rsplit_once(", expected ")
        {
            return Self::WrongType { got: got.to_owned(), wanted: wanted.to_owned() };
        }
        Self::Other(text.to_owned())
    }
}

impl Problem {
    fn fault(&self, pointer: &str, language: Language) -> Fault {
        let (code, detail) = match self {
            Self::Missing { name } => ("field-missing", MISSING.say(language, &[("name", name)])),
            Self::Unknown { name, nearest: None } => ("field-unknown", UNKNOWN.say(language, &[("name", &short(name))])),
            Self::Unknown { name, nearest: Some(nearest) } => {
                ("field-unknown", MISSPELT.say(language, &[("name", &short(name)), ("nearest", nearest)]))
            }
            Self::WrongWord { name, allowed } => ("field-wrong", WRONG_WORD.say(language, &[("name", &short(name)), ("allowed", allowed)])),
            Self::WrongType { got, wanted } => {
                let (got, wanted) = (kind(got, language), kind(wanted, language));
                ("field-wrong", WRONG_TYPE.say(language, &[("got", &got), ("wanted", &wanted)]))
            }
            Self::Other(reason) => ("field-wrong", OTHERWISE.say(language, &[("reason", &short(reason))])),
        };
        Fault { code: code.to_owned(), pointer: pointer.to_owned(), detail }
    }
}

/// Serde's names for kinds of values, for people.
fn kind(text: &str, language: Language) -> String {
    const KINDS: &[(&str, Words)] = &[
        ("string ", Words { ru: "текст {value}", en: "the text {value}", de: "der Text {value}" }),
        ("integer ", Words { ru: "число {value}", en: "the number {value}", de: "die Zahl {value}" }),
        ("floating point ", Words { ru: "число {value}", en: "the number {value}", de: "die Zahl {value}" }),
        ("boolean ", Words { ru: "{value}", en: "{value}", de: "{value}" }),
        ("null", Words { ru: "null", en: "null", de: "null" }),
        ("map", Words { ru: "объект", en: "an object", de: "ein Objekt" }),
        ("sequence", Words { ru: "список", en: "a list", de: "eine Liste" }),
        ("a sequence", Words { ru: "список", en: "a list", de: "eine Liste" }),
        ("a string", Words { ru: "текст", en: "a text", de: "ein Text" }),
        ("u32", Words { ru: "целое число от 0", en: "a whole number from 0", de: "eine ganze Zahl ab 0" }),
        ("u64", Words { ru: "целое число от 0", en: "a whole number from 0", de: "eine ganze Zahl ab 0" }),
        ("a boolean", Words { ru: "true или false", en: "true or false", de: "true oder false" }),
        ("struct ", Words { ru: "объект", en: "an object", de: "ein Objekt" }),
    ];
    for (name, words) in KINDS {
        if let Some(value) = text.strip_prefix(name) {
            return words.say(language, &[("value", &short(&value.replace('`', "")))]);
        }
    }
    short(text)
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .map(|(_, known)| known.to_owned())
}

fn pointer_of(path: &serde_path_to_error::Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", escape(key)),
        // Our enums are words or carry one value: the key that names the variant is part of the path all the same.
        Segment::Enum { variant } => format!("/{}", escape(variant)),
        Segment::Unknown => String::new(),
    };
    path.iter().map(step).collect()
}

/// A key inside a JSON pointer (RFC 6901).
#[must_use]
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
