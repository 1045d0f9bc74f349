//! What the adapters of foreign formats share: careful looks into JSON that others have made, and faults that point into it.

use super::plain_text;
use crate::{
    domain::{
        agenda::{Language, OutcomeCategory},
        failure::Fault,
    },
    generator::words::{Words, short},
};
use serde_json::{Map, Value, json};

/// What an adapter made: an agenda in our own format, with faults that point into the foreign one.
#[derive(Debug, Default)]
pub struct Translated {
    /// Our own format; `None` if there is nothing to go on with.
    pub agenda: Option<Value>,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// Collects faults while an agenda is translated.
#[derive(Debug)]
pub struct Findings {
    pub language: Language,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// A question's status where the format knows none: what has been published is as signed as it gets.
pub const READY: &str = "REPORT_SIGNED";

const MISSING: Words = Words {
    ru: "Нет поля «{name}», а без него протокола нет. Дополните данные в источнике.",
    en: "The field “{name}” is missing, and there is no protocol without it. Add it at the source.",
    de: "Das Feld „{name}“ fehlt, und ohne es gibt es kein Protokoll. Ergänzen Sie es in der Quelle.",
};
const ANOTHER_AGENDA: Words = Words {
    ru: "Это заседание «{found}», а запрошено «{asked}». Проверьте источник.",
    en: "This is meeting “{found}”, but “{asked}” was asked for. Check the source.",
    de: "Das ist die Sitzung „{found}“, gefragt war nach „{asked}“. Prüfen Sie die Quelle.",
};
const CANCELLED: Words = Words {
    ru: "Заседание отменено; протокола у него нет.",
    en: "The meeting was cancelled; it has no protocol.",
    de: "Die Sitzung wurde abgesagt; sie hat kein Protokoll.",
};
const MARKUP: Words = Words {
    ru: "Текст в формате RTF не читается и опущен. Исправьте его в источнике.",
    en: "A text in RTF cannot be read and is left out. Correct it at the source.",
    de: "Ein RTF-Text ist nicht lesbar und entfällt. Berichtigen Sie ihn in der Quelle.",
};
const LINK: Words = Words {
    ru: "Ссылка {href} не открыта: {reason}.",
    en: "The link {href} was not followed: {reason}.",
    de: "Dem Verweis {href} wurde nicht gefolgt: {reason}.",
};

impl Findings {
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self { language, errors: Vec::new(), warnings: Vec::new() }
    }

    pub fn missing(&mut self, pointer: &str) {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        self.error("field-missing", pointer, MISSING.say(self.language, &[("name", name)]));
    }

    pub fn another_agenda(&mut self, pointer: &str, found: &str, asked: &str) {
        let detail = ANOTHER_AGENDA.say(self.language, &[("found", &short(found)), ("asked", asked)]);
        self.error("agenda-id-differs", pointer, detail);
    }

    pub fn cancelled(&mut self, pointer: &str) {
        self.error("meeting-cancelled", pointer, CANCELLED.text(self.language).to_owned());
    }

    /// A link that is not followed takes nothing away that a protocol needs.
    pub fn not_followed(&mut self, pointer: &str, href: &str, reason: &str) {
        self.warning("link-not-followed", pointer, LINK.say(self.language, &[("href", &short(href)), ("reason", reason)]));
    }

    pub fn error(&mut self, code: &str, pointer: &str, detail: String) {
        self.errors.push(Fault { code: code.to_owned(), pointer: pointer.to_owned(), detail });
    }

    pub fn warning(&mut self, code: &str, pointer: &str, detail: String) {
        self.warnings.push(Fault { code: code.to_owned(), pointer: pointer.to_owned(), detail });
    }

    /// The paragraphs of a text that may hold markup.
    pub fn paragraphs(&mut self, text: Option<&str>, pointer: &str) -> Vec<String> {
        let Some(text) = text else { return Vec::new() };
        if let Some(plain) = plain_text::plain(text) {
            return plain_text::paragraphs(&plain);
        }
        self.warning("markup-unreadable", pointer, MARKUP.text(self.language).to_owned());
        Vec::new()
    }

    #[must_use]
    pub fn translated(self, agenda: Option<Value>) -> Translated {
        Translated { agenda, errors: self.errors, warnings: self.warnings }
    }
}

/// A text that says something.
#[must_use]
pub fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The elements of a list; a single object counts as a list of one, and anything else as none.
#[must_use]
pub fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    match value.get(field) {
        Some(Value::Array(list)) => list,
        Some(one @ (Value::Object(_) | Value::String(_))) => std::slice::from_ref(one),
        _ => &[],
    }
}

/// Puts a field unless it says nothing.
pub fn put(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let says_nothing = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    if !says_nothing {
        object.insert(name.to_owned(), value);
    }
}

/// An outcome in our words and in the body's own.
#[must_use]
pub fn outcome(category: OutcomeCategory, words: &str) -> Value {
    json!({"category": category.as_str(), "words": plain_text::one_line(words)})
}

/// A made-up id from one that may hold anything.
#[must_use]
pub fn id_of(text: &str) -> String {
    let end = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let clean: String = end.chars().map(|c| if c.is_ascii_alphanumeric() || "._~-".contains(c) { c } else { '-' }).collect();
    let clean = clean.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    clean.chars().take(128).collect()
}

/// The host of an address, which is at least some name for who publishes it.
#[must_use]
pub fn host_of(text: &str) -> Option<String> {
    reqwest::Url::parse(text).ok()?.host_str().map(str::to_owned)
}

/// A file's type by the end of its name.
#[must_use]
pub fn media_type_of(name: &str) -> &'static str {
    let path = name.split(['?', '#']).next().unwrap_or_default();
    match path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
        Some("pdf") => "application/pdf",
        Some("doc") => "application/msword",
        Some("docx") => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Some("xls") => "application/vnd.ms-excel",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Some("ppt") => "application/vnd.ms-powerpoint",
        Some("pptx") => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        Some("txt") => "text/plain",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        _ => "application/octet-stream",
    }
}

/// The first category of which a word occurs in what a body says, in the order of the list: "not approved" must be looked for before "approved".
#[must_use]
pub fn category_by(words: &str, list: &[(OutcomeCategory, &[&str])]) -> OutcomeCategory {
    let lower = words.to_lowercase();
    let found = list.iter().find(|(_, signs)| signs.iter().any(|sign| lower.contains(sign)));
    found.map_or(OutcomeCategory::Other, |(category, _)| *category)
}
