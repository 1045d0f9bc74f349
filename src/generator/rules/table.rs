//! All rules, in the order in which a secretary wants to read what they find.

use super::{ballots, decisions, files, identity, persons, quorum, rule::Rule, times, votes};

pub static RULES: &[&Rule] = &[
    &identity::NO_QUESTIONS,
    &identity::TEXT_MISSING,
    &identity::QUESTION_TEXT_MISSING,
    &identity::DUPLICATE_PERSON,
    &identity::DUPLICATE_QUESTION,
    &identity::DUPLICATE_ORDER,
    &persons::UNKNOWN_OFFICER,
    &persons::UNKNOWN_PERSON,
    &persons::CHAIR_ABSENT,
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
    &decisions::DECISION_AGAINST_THE_VOTE,
    &decisions::NOTHING_DECIDED,
    &decisions::DECISION_NUMBERING,
    &decisions::DATE_UNREADABLE,
    &files::REPORT_MISSING,
    &files::DIGEST_UNREADABLE,
];

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
                assert!(rule.code != other.code || rule.severity == other.severity, "{}", rule.code);
            }
        }
    }
}
