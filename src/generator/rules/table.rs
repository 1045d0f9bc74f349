//! All rules, in the order in which a secretary wants to read what they find.

use super::{attendance, ballots, decisions, dissent, files, identity, persons, quorum, rule::Rule, times, votes};
use crate::generator::format::AgendaFormat;

pub static RULES: &[&Rule] = &[
    &identity::NO_QUESTIONS,
    &identity::TEXT_MISSING,
    &identity::QUESTION_TEXT_MISSING,
    &identity::DUPLICATE_PERSON,
    &identity::DUPLICATE_QUESTION,
    &identity::DUPLICATE_ORDER,
    &identity::DUPLICATE_NUMBER,
    &persons::UNKNOWN_OFFICER,
    &persons::UNKNOWN_PERSON,
    &persons::CHAIR_ABSENT,
    &persons::SECRETARY_ABSENT,
    &persons::CHAIR_NOT_THERE,
    &persons::SPEAKER_NOT_THERE,
    &attendance::ABSENT_AND_THERE,
    &attendance::PRESENT_WITH_A_REASON_FOR_ABSENCE,
    &attendance::INTERVALS_OUT_OF_ORDER,
    &times::TIME_UNREADABLE,
    &times::QUESTION_TIME_UNREADABLE,
    &times::TIME_ZONE_UNKNOWN,
    &times::TIME_ZONE_MISSING,
    &times::ENDS_BEFORE_IT_STARTS,
    &times::PRESENCE_OUTSIDE_SITTING,
    &times::TIME_OUTSIDE_SITTING,
    &times::QUESTION_TIME_MISSING,
    &quorum::NO_QUORUM,
    &votes::VOTES_DO_NOT_ADD_UP,
    &votes::NAMED_VOTES_DIFFER,
    &votes::VOTED_TWICE,
    &votes::VOTER_NOT_PRESENT,
    &votes::VOTER_RECUSED,
    &votes::VOTER_NOT_ENTITLED,
    &ballots::SECRET_BALLOT_WITH_NAMES,
    &ballots::PAPERS_ISSUED,
    &ballots::PAPERS_FOUND,
    &ballots::TOO_MANY_PAPERS,
    &ballots::PAPERS_MISSING,
    &ballots::TELLERS_MISSING,
    &dissent::DISSENTER_TOOK_NO_PART,
    &dissent::DISSENT_OF_A_SUPPORTER,
    &decisions::DECISION_AGAINST_THE_VOTE,
    &decisions::NOTHING_DECIDED,
    &decisions::DECISION_NUMBERING,
    &decisions::DATE_UNREADABLE,
    &decisions::DUE_BEFORE_THE_SITTING,
    &files::REPORT_MISSING,
    &files::DIGEST_UNREADABLE,
];

/// The codes of rules whose input a format cannot carry, each once.
#[must_use]
pub fn not_applicable(format: AgendaFormat) -> Vec<&'static str> {
    let applies = |code| RULES.iter().any(|rule| rule.code == code && rule.applies_to(format));
    let mut codes: Vec<&str> = RULES.iter().map(|rule| rule.code).filter(|code| !applies(*code)).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::agenda::Language;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_says_the_same_in_three_languages() {
        for rule in RULES {
            let names = |language| -> BTreeSet<String> {
                rule.words.text(language).split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0.to_owned())).collect()
            };
            assert_eq!(names(Language::Ru), names(Language::En), "{}", rule.code);
            assert_eq!(names(Language::Ru), names(Language::De), "{}", rule.code);
        }
    }

    #[test]
    fn one_code_has_one_severity() {
        for rule in RULES {
            for other in RULES {
                assert!(rule.code != other.code || rule.weight == other.weight, "{}", rule.code);
            }
        }
    }
}
