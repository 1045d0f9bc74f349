//! Sentences in the three languages of the generator, with `{names}` that are filled in.

use crate::domain::agenda::Language;

/// One sentence: what is wrong and what to do, for the secretary.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    pub ru: &'static str,
    pub en: &'static str,
    pub de: &'static str,
}

/// Names and what they stand for.
pub type Values<'a> = &'a [(&'a str, &'a str)];

impl Words {
    #[must_use]
    pub const fn text(&self, language: Language) -> &'static str {
        match language {
            Language::Ru => self.ru,
            Language::En => self.en,
            Language::De => self.de,
        }
    }

    /// The sentence with every `{name}` replaced. One pass, so that a value which looks like a name stays what it is; a name without a value stays visible.
    #[must_use]
    pub fn say(&self, language: Language, values: Values<'_>) -> String {
        let mut said = String::new();
        let mut rest = self.text(language);
        while let Some((before, after)) = rest.split_once('{') {
            said.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                said.push('{');
                rest = after;
                continue;
            };
            if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
                said.push_str(value);
            } else {
                said.push('{');
                said.push_str(name);
                said.push('}');
            }
            rest = after;
        }
        said.push_str(rest);
        said
    }
}

/// A text from an agenda, short enough to stand inside a sentence.
#[must_use]
pub fn short(text: &str) -> String {
    const LIMIT: usize = 120;
    if text.chars().count() <= LIMIT { text.to_owned() } else { text.chars().take(LIMIT).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_once() {
        let words = Words { ru: "«{title}» и {count}, {nobody}", en: "", de: "" };
        assert_eq!(words.say(Language::Ru, &[("title", "{count}"), ("count", "2")]), "«{count}» и 2, {nobody}");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(short("Ж"), "Ж");
        assert_eq!(short(&"Ж".repeat(500)).chars().count(), 121);
    }
}
