//! Quorum at the question itself: late arrivals, leavings and recusals count.

use super::rule::{Rule, Subject, Weight};
use crate::{
    domain::agenda::OutcomeCategory,
    generator::{format::Datum, words::Words},
};

pub static NO_QUORUM: Rule = Rule {
    code: "no-quorum",
    weight: Weight::Error,
    needs: &[Datum::Quorum, Datum::Attendance],
    words: Words {
        ru: "для решения нужно {needed} членов с правом голоса, а участвовало {present} (из {all}; отводы и уход учтены). Проверьте явку или отложите вопрос.",
        en: "{needed} voting members are needed to decide, {present} of {all} took part (recusals and leavings counted). Check the attendance or postpone the question.",
        de: "zur Beschlussfassung sind {needed} stimmberechtigte Mitglieder nötig, beteiligt waren {present} von {all} (Befangenheit und Weggang mitgerechnet). Prüfen Sie die Anwesenheit oder vertagen Sie den Punkt.",
    },
    subject: Subject::Question(|case, findings| {
        let decided = case.question.outcome.as_ref().is_some_and(|outcome| {
            matches!(outcome.category, OutcomeCategory::Adopted | OutcomeCategory::Rejected | OutcomeCategory::Elected)
        });
        if !decided && case.question.vote.is_none() {
            return;
        }
        let Some(needed) = case.sitting.quorum() else { return };
        let present = case.entitled();
        if present.at_most < needed {
            let pointer = if case.question.vote.is_some() { "/vote" } else { "/outcome" };
            let all = case.sitting.voting_members().to_string();
            findings.add(pointer, &[("needed", &needed.to_string()), ("present", &present.to_string()), ("all", &all)]);
        }
    }),
};
