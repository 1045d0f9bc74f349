//! Who was there and who voted how, from Legistar's roll calls and votes: words that each client chooses for itself.

use super::names::Kind;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a word of a roll call or a vote means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    For,
    Against,
    Abstained,
    /// There, and did not vote.
    NotVoted,
    /// There, and stood aside.
    Recused,
    /// There (a roll call).
    Present,
    /// There from elsewhere.
    Remote,
    /// There for a part of the sitting.
    PartOfTheTime,
    Absent,
}

/// Words and what they begin with, in the order in which they have to be looked for.
const MEANINGS: &[(Meaning, &[&str])] = &[
    (Meaning::NotVoted, &["non-voting", "nonvoting", "non voting", "not voting", "no vote", "did not vote", "present, not"]),
    (Meaning::Recused, &["recus", "conflict", "disqualif"]),
    (Meaning::For, &["aff", "aye", "yes", "yea", "for", "in favor", "in favour"]),
    (Meaning::Against, &["neg", "nay", "no", "against", "oppos"]),
    (Meaning::Abstained, &["abst"]),
    (Meaning::Remote, &["remote", "virtual", "teleconf", "online", "via "]),
    (Meaning::PartOfTheTime, &["late", "arrived", "left", "depart", "early"]),
    (Meaning::Present, &["present", "in attendance", "attended"]),
    (
        Meaning::Absent,
        &[
            "absent",
            "excused",
            "medical",
            "parental",
            "maternity",
            "paternity",
            "bereave",
            "jury",
            "away",
            "vacant",
            "suspend",
            "leave",
            "out",
        ],
    ),
];

/// What a word means; a word that nobody knows goes by `VoteResult`, which is 1 for a vote in favour.
#[must_use]
pub fn meaning(word: &str, result: Option<i64>) -> Option<Meaning> {
    let lower = word.trim().to_lowercase();
    let known = MEANINGS.iter().find(|(_, signs)| signs.iter().any(|sign| lower.starts_with(sign)));
    known.map(|(meaning, _)| *meaning).or_else(|| (result == Some(1)).then_some(Meaning::For))
}

/// One person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub person: String,
    pub name: String,
    pub word: String,
    pub meaning: Option<Meaning>,
}

/// Reads one entry of a roll call or of votes; `None` if it names nobody.
#[must_use]
pub fn said(kind: Kind, entry: &Value) -> Option<Said> {
    let name = kind.line(entry, "PersonName").or_else(|| kind.line(entry, "FullName"))?;
    let word = kind.line(entry, "ValueName").or_else(|| kind.line(entry, "Value")).unwrap_or_default();
    let person = kind.id(entry, "PersonId").unwrap_or_else(|| name.clone());
    let meaning = meaning(&word, kind.number(entry, "Result"));
    Some(Said { person, name, word, meaning })
}

/// Everyone who was named, and what was said of them.
#[derive(Debug, Default)]
pub struct Roster(BTreeMap<(usize, String), Person>);

#[derive(Debug, Default)]
struct Person {
    name: String,
    there: bool,
    remote: bool,
    away: Option<String>,
}

impl Roster {
    pub fn note(&mut self, said: &Said) {
        let known = self.0.keys().find(|(_, id)| *id == said.person).cloned();
        let key = known.unwrap_or_else(|| (self.0.len(), said.person.clone()));
        let person = self.0.entry(key).or_default();
        person.name.clone_from(&said.name);
        match said.meaning {
            // A reason says more than the bare word.
            Some(Meaning::Absent) if person.away.is_none() || !said.word.eq_ignore_ascii_case("absent") => {
                person.away = Some(said.word.clone());
            }
            Some(Meaning::PartOfTheTime) => (person.there, person.away) = (true, Some(said.word.clone())),
            Some(Meaning::Remote) => (person.there, person.remote) = (true, true),
            Some(Meaning::Absent) | None => {}
            Some(_) => person.there = true,
        }
    }

    /// The members, in the order in which they were named. Who was there for one question and not for another was there for a part of the sitting; when, is not said.
    #[must_use]
    pub fn members(&self) -> Vec<Value> {
        let member = |((_, id), person): (&(usize, String), &Person)| {
            let mut member = json!({"id": id, "name": person.name});
            member["attendance"] = json!(if person.remote {
                "remote"
            } else if person.there {
                "present"
            } else {
                "absent"
            });
            match &person.away {
                Some(_) if person.there => member["presence"] = json!([{}]),
                Some(word) if !word.eq_ignore_ascii_case("absent") => member["absenceReason"] = json!(word),
                _ => {}
            }
            member
        };
        self.0.iter().map(member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_clients_mean_by_them() {
        for (word, want) in [
            ("Affirmative", Meaning::For),
            ("Yes", Meaning::For),
            ("Aye", Meaning::For),
            ("Negative", Meaning::Against),
            ("No", Meaning::Against),
            ("Non-voting", Meaning::NotVoted),
            ("Abstain", Meaning::Abstained),
            ("Conflict", Meaning::Recused),
            ("Recused", Meaning::Recused),
            ("Excused", Meaning::Absent),
            ("Parental", Meaning::Absent),
            ("Jury Duty", Meaning::Absent),
            ("Present", Meaning::Present),
            ("Arrived late", Meaning::PartOfTheTime),
        ] {
            assert_eq!(meaning(word, None), Some(want), "{word}");
        }
        assert_eq!(meaning("Zustimmung", Some(1)), Some(Meaning::For));
        assert_eq!(meaning("Zustimmung", None), None);
    }
}
