//! Whether what arrived is what the agenda announces.

use crate::{
    domain::agenda::{File, Language},
    generator::{
        documents::Stored,
        words::{Words, short},
    },
};

/// What is wrong with a file; its code and words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub code: &'static str,
    pub detail: String,
}

const OTHER_DIGEST: Words = Words {
    ru: "Файл «{name}» не тот, что заявлен: другая контрольная сумма SHA-256. Проверьте файл или данные о нём.",
    en: "The file “{name}” is not the one announced: its SHA-256 differs. Check the file or what is said of it.",
    de: "Die Datei „{name}“ ist nicht die angekündigte: die SHA-256-Prüfsumme weicht ab. Prüfen Sie die Datei oder die Angaben dazu.",
};
const OTHER_SIZE: Words = Words {
    ru: "Файл «{name}» не тот, что заявлен: {found} байт вместо {announced}. Проверьте файл или данные о нём.",
    en: "The file “{name}” is not the one announced: {found} bytes instead of {announced}. Check the file or what is said of it.",
    de: "Die Datei „{name}“ ist nicht die angekündigte: {found} statt {announced} Byte. Prüfen Sie die Datei oder die Angaben dazu.",
};
const OTHER_TYPE: Words = Words {
    ru: "Вместо файла «{name}» ({announced}) пришло {found}: возможно, страница с ошибкой или входом. Проверьте адрес файла.",
    en: "Instead of the file “{name}” ({announced}) came {found}: perhaps an error page, or one to sign in. Check the file's address.",
    de: "Statt der Datei „{name}“ ({announced}) kam {found}: vielleicht eine Fehler- oder Anmeldeseite. Prüfen Sie die Adresse der Datei.",
};

/// Types that say no more than "a file".
const UNSPECIFIC: [&str; 5] =
    ["application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-download", "application/download"];

/// Compares the holder's type with the announced one. Two texts are the same to us, and so are `application/pdf` and `application/x-pdf`.
pub(super) fn media_type(found: Option<&str>, file: &File, name: &str, language: Language) -> Option<Wrong> {
    let found = found?;
    let announced = file.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_unspecific = |media_type: &str| media_type.is_empty() || UNSPECIFIC.contains(&media_type);
    let plain = |media_type: &str| media_type.replace("/x-", "/");
    let both_texts = [found, announced.as_str()].iter().all(|media_type| media_type.starts_with("text/") && *media_type != "text/html");
    if is_unspecific(found) || is_unspecific(&announced) || plain(found) == plain(&announced) || both_texts {
        return None;
    }
    let values = [("name", short(name)), ("announced", short(&announced)), ("found", short(found))];
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (*key, value.as_str())).collect();
    Some(Wrong { code: "report-wrong-type", detail: OTHER_TYPE.say(language, &values) })
}

/// Compares size and digest.
pub(super) fn content(stored: &Stored, file: &File, name: &str, language: Language) -> Option<Wrong> {
    if let Some(announced) = file.bytes.filter(|announced| *announced != stored.bytes) {
        let (found, announced) = (stored.bytes.to_string(), announced.to_string());
        let detail = OTHER_SIZE.say(language, &[("name", &short(name)), ("found", &found), ("announced", &announced)]);
        return Some(Wrong { code: "report-size-differs", detail });
    }
    // What is no digest at all is told by a rule.
    let differs = file.sha256.as_ref().is_some_and(|announced| announced.len() == 64 && !announced.eq_ignore_ascii_case(&stored.sha256));
    differs.then(|| Wrong { code: "report-altered", detail: OTHER_DIGEST.say(language, &[("name", &short(name))]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_say_something_else_are_wrong() {
        let is_wrong = |found: &str, announced: &str| {
            let file = File { href: None, base64: None, media_type: announced.to_owned(), name: None, bytes: None, sha256: None };
            media_type(Some(found), &file, "a", Language::En).is_some()
        };
        for (found, announced) in [
            ("application/pdf", "application/pdf"),
            ("application/pdf", "Application/PDF; charset=binary"),
            ("application/x-pdf", "application/pdf"),
            ("application/octet-stream", "application/pdf"),
            ("image/png", "application/octet-stream"),
            ("text/plain", "text/markdown"),
            ("text/html", "text/html"),
        ] {
            assert!(!is_wrong(found, announced), "{found} for {announced}");
        }
        for (found, announced) in [
            ("text/html", "application/pdf"),
            ("text/html", "text/plain"),
            ("application/json", "application/pdf"),
            ("image/png", "application/pdf"),
        ] {
            assert!(is_wrong(found, announced), "{found} for {announced}");
        }
    }
}
