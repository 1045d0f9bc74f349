//! The document's own words, per language: labels, dates, plurals, whole sentences.
//!
//! Sentences are whole, never glued from parts by the caller: languages differ in more than words. Russian avoids the past tense of persons
//! (прибыл, прибыла) on purpose: the agenda does not say who is a man and who a woman.

mod de;
mod en;
mod ru;

use super::model::Role;
use crate::domain::agenda::{Language, OutcomeCategory, Share, Vote};
use jiff::civil::{Date, Time};

/// The words of a language.
#[must_use]
pub fn of(language: Language) -> &'static dyn Words {
    match language {
        Language::Ru => &ru::Russian,
        Language::En => &en::English,
        Language::De => &de::German,
    }
}

/// Labels without anything to count or decline.
#[derive(Debug)]
pub struct Labels {
    pub kind: &'static str,
    pub opened: &'static str,
    pub chair: &'static str,
    pub secretary: &'static str,
    pub tellers: &'static str,
    pub absent: &'static str,
    pub invited: &'static str,
    pub quorum: &'static str,
    pub agenda: &'static str,
    pub rapporteur: &'static str,
    pub heard: &'static str,
    pub discussed: &'static str,
    pub decided: &'static str,
    pub voted: &'static str,
    pub secret_ballot: &'static str,
    pub named_votes: &'static str,
    pub choice: &'static str,
    pub count: &'static str,
    pub members: &'static str,
    pub in_favour: &'static str,
    pub against: &'static str,
    pub abstained: &'static str,
    pub not_voted: &'static str,
    pub outcome: &'static str,
    pub dissent: &'static str,
    pub annexes: &'static str,
    pub attendance_list: &'static str,
    pub file_list: &'static str,
    /// Above a column of annexes' numbers.
    pub annex_number: &'static str,
    pub question: &'static str,
    pub file: &'static str,
    pub size: &'static str,
    pub remote: &'static str,
    pub without_vote: &'static str,
    pub closed_session: &'static str,
    pub no_reason: &'static str,
}

/// How many there are, and how many of them are there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    pub now: usize,
    pub total: usize,
}

/// Whether the body may decide.
#[derive(Debug, Clone, Copy)]
pub struct Quorum {
    /// Members with a voting right.
    pub entitled: usize,
    pub present: usize,
    pub share: Share,
    /// How many it takes.
    pub needed: usize,
}

impl Quorum {
    #[must_use]
    pub const fn is_reached(self) -> bool {
        self.present >= self.needed
    }
}

/// Everything that a language has to be able to say.
pub trait Words: Sync {
    fn labels(&self) -> &'static Labels;
    /// «заседания Совета депутатов»
    fn subject(&self, body: &str) -> String;
    fn number(&self, number: &str) -> String;
    /// The title in the file's properties.
    fn title(&self, number: &str, body: &str, date: &str) -> String;
    fn date(&self, date: Date) -> String;
    fn time(&self, time: Time) -> String;
    /// «10:00» to «12:30», the second if it is known.
    fn sitting(&self, start: &str, end: Option<&str>) -> String;
    /// «Присутствовали»
    fn attended_label(&self, now: usize) -> &'static str;
    /// After the label: «11 человек из 13».
    fn attended(&self, present: Present) -> String;
    fn list_in_annex(&self, annex: usize) -> String;
    /// In brackets after a name.
    fn since(&self, time: &str) -> String;
    fn until(&self, time: &str) -> String;
    fn quorum(&self, quorum: Quorum) -> String;
    fn arrives(&self, time: &str, names: &[String], present: Present) -> String;
    fn leaves(&self, time: &str, names: &[String], present: Present) -> String;
    /// Takes no part in a question.
    fn recused(&self, name: &str, reason: Option<&str>) -> String;
    fn due(&self, date: &str) -> String;
    fn responsible(&self, who: &str) -> String;
    fn voted(&self, vote: &Vote) -> String;
    fn papers(&self, vote: &Vote) -> Option<String>;
    fn outcome(&self, category: OutcomeCategory) -> &'static str;
    /// Of a decision whose agenda does not say what became of it but whose votes do.
    fn adopted(&self, unanimously: bool) -> &'static str;
    fn annex(&self, number: usize) -> String;
    fn report_attached(&self, annex: usize) -> String;
    fn files_attached(&self, files: &[(usize, String)]) -> String;
    /// The line of the annex list that stands for the attached files.
    fn files_enclosed(&self, first: usize, last: usize) -> String;
    /// Above the table of attached files.
    fn files_explained(&self) -> &'static str;
    fn file_role(&self, role: Role) -> &'static str;
    fn bytes(&self, bytes: u64) -> String;
    fn closed(&self, time: Option<&str>) -> String;
    fn signs_initials_first(&self) -> bool;
}

/// Digits in groups of three.
fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

/// `a, b and c` with the language's own word before the last.
fn listed(names: &[String], and: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {and} {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_says_counts_right() {
        let ru = of(Language::Ru);
        for (now, total, want) in [
            (1, 13, "1 человек из 13"),
            (2, 13, "2 человека из 13"),
            (5, 13, "5 человек из 13"),
            (11, 13, "11 человек из 13"),
            (21, 25, "21 человек из 25"),
            (22, 25, "22 человека из 25"),
            (111, 120, "111 человек из 120"),
        ] {
            assert_eq!(ru.attended(Present { now, total }).replace('\u{a0}', " "), want);
        }
        assert_eq!(of(Language::En).attended(Present { now: 1, total: 13 }), "1 of 13 members");
        assert_eq!(of(Language::De).attended(Present { now: 11, total: 13 }), "11 von 13 Mitgliedern");
    }

    #[test]
    fn dates_are_spelt_in_each_language() {
        let date = Date::constant(2026, 11, 30);
        let plain = |language| of(language).date(date).replace('\u{a0}', " ");
        assert_eq!(plain(Language::Ru), "30 ноября 2026 г.");
        assert_eq!(plain(Language::En), "30 November 2026");
        assert_eq!(plain(Language::De), "30. November 2026");
        let may = of(Language::Ru).date(Date::constant(2026, 5, 1)).replace('\u{a0}', " ");
        assert_eq!(may, "1 мая 2026 г.");
    }

    #[test]
    fn sizes_are_grouped() {
        assert_eq!(of(Language::Ru).bytes(48_213).replace('\u{a0}', " "), "48 213 байт");
        assert_eq!(of(Language::Ru).bytes(1_002).replace('\u{a0}', " "), "1 002 байта");
        assert_eq!(of(Language::Ru).bytes(1).replace('\u{a0}', " "), "1 байт");
        assert_eq!(of(Language::En).bytes(1_234_567), "1,234,567\u{a0}bytes");
        assert_eq!(of(Language::De).bytes(999), "999\u{a0}Bytes");
    }
}
