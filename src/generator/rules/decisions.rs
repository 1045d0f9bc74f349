//! What was decided must follow from the vote, and must be there.

use super::{
    rule::{Rule, Subject, Weight},
    sitting::Case,
};
use crate::{
    domain::agenda::{Majority, OutcomeCategory, Vote},
    generator::{
        format::{AgendaFormat, Datum},
        words::{Words, short},
    },
};

pub static DECISION_AGAINST_THE_VOTE: Rule = Rule {
    code: "decision-against-the-vote",
    weight: Weight::Error,
    needs: &[Datum::Counts, Datum::Majority],
    words: Words {
        ru: "по итогам голосования (за — {for}, против — {against}; требуется: {majority}) решение {voted}, а записано обратное. Исправьте решение или итоги голосования.",
        en: "by the vote (for {for}, against {against}; needed: {majority}) the decision is {voted}, but the opposite is recorded. Correct the decision or the count.",
        de: "nach der Abstimmung (dafür {for}, dagegen {against}; nötig: {majority}) ist der Beschluss {voted}, vermerkt ist das Gegenteil. Berichtigen Sie den Beschluss oder die Auszählung.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(vote) = &case.question.vote else { return };
        let recorded = match case.question.outcome.as_ref().map(|outcome| outcome.category) {
            Some(OutcomeCategory::Adopted | OutcomeCategory::Elected) => true,
            Some(OutcomeCategory::Rejected) => false,
            // A decision without an outcome is printed as what was decided.
            None if !case.question.decision.is_empty() => true,
            _ => return,
        };
        let usual = case.sitting.agenda.rules.as_ref().map(|rules| rules.majority);
        let Some(majority) = vote.majority.or(usual) else { return };
        if let Some(adopted) = is_adopted(case, vote, majority)
            && adopted != recorded
        {
            let pointer = if case.question.outcome.is_some() { "/outcome/category" } else { "/decision" };
            let voted = if adopted { ADOPTED } else { NOT_ADOPTED };
            findings.add(
                pointer,
                &[
                    ("for", &vote.in_favour.to_string()),
                    ("against", &vote.against.to_string()),
                    ("majority", majority_words(majority).text(findings.language())),
                    ("voted", voted.text(findings.language())),
                ],
            );
        }
    }),
};

const ADOPTED: Words = Words { ru: "принято", en: "adopted", de: "angenommen" };
const NOT_ADOPTED: Words = Words { ru: "не принято", en: "not adopted", de: "nicht angenommen" };

/// Whether the vote adopts; `None` if that depends on whether somebody was there.
fn is_adopted(case: &Case<'_>, vote: &Vote, majority: Majority) -> Option<bool> {
    let (favour, present, all) = (u64::from(vote.in_favour), case.entitled(), u64::from(case.sitting.voting_members()));
    let of_present = |passes: &dyn Fn(u64) -> bool| {
        let (few, many) = (passes(u64::from(present.at_least)), passes(u64::from(present.at_most)));
        (few == many).then_some(few)
    };
    match majority {
        Majority::Simple => Some(vote.in_favour > vote.against),
        Majority::OfPresent => of_present(&|present| favour * 2 > present),
        Majority::Absolute => Some(favour * 2 > all),
        Majority::TwoThirdsOfPresent => of_present(&|present| favour * 3 >= present * 2),
        Majority::TwoThirds => Some(favour * 3 >= all * 2),
    }
}

const fn majority_words(majority: Majority) -> Words {
    match majority {
        Majority::Simple => {
            Words { ru: "больше «за», чем «против»", en: "more for than against", de: "mehr dafür als dagegen" }
        }
        Majority::OfPresent => {
            Words {
                ru: "большинство присутствующих", en: "a majority of those present", de: "die Mehrheit der Anwesenden"
            }
        }
        Majority::Absolute => Words {
            ru: "большинство всех членов", en: "a majority of all members", de: "die Mehrheit aller Mitglieder"
        },
        Majority::TwoThirdsOfPresent => {
            Words {
                ru: "две трети присутствующих", en: "two thirds of those present", de: "zwei Drittel der Anwesenden"
            }
        }
        Majority::TwoThirds => {
            Words { ru: "две трети всех членов", en: "two thirds of all members", de: "zwei Drittel aller Mitglieder" }
        }
    }
}

pub static NOTHING_DECIDED: Rule = Rule {
    code: "nothing-decided",
    weight: Weight::ErrorExceptIn(&[AgendaFormat::OParl, AgendaFormat::Legistar]),
    needs: &[],
    words: Words {
        ru: "нет ни решения, ни иного итога. Внесите решение или укажите, что вопрос снят, перенесён или принят к сведению.",
        en: "there is neither a decision nor another outcome. Enter the decision, or say that it was withdrawn, postponed or noted.",
        de: "es gibt weder einen Beschluss noch ein anderes Ergebnis. Tragen Sie den Beschluss ein oder vermerken Sie, dass der Punkt abgesetzt, vertagt oder zur Kenntnis genommen wurde.",
    },
    subject: Subject::Question(|case, findings| {
        let says_so = case.question.outcome.as_ref().is_some_and(|outcome| outcome.category != OutcomeCategory::Adopted);
        if case.question.decision.is_empty() && !says_so {
            findings.add("/decision", &[]);
        }
    }),
};

pub static DECISION_NUMBERING: Rule = Rule {
    code: "decision-numbering",
    weight: Weight::Error,
    needs: &[Datum::DecisionPoints],
    words: Words {
        ru: "пункт решения пронумерован «{found}», а должен быть «{wanted}». Исправьте номер или уберите его.",
        en: "a point of the decision is numbered “{found}” where “{wanted}” is due. Correct the number or leave it out.",
        de: "ein Punkt des Beschlusses trägt die Nummer „{found}“, nötig ist „{wanted}“. Berichtigen Sie die Nummer oder lassen Sie sie weg.",
    },
    subject: Subject::Question(|case, findings| {
        for (index, point) in case.question.decision.iter().enumerate() {
            let Some(found) = &point.number else { continue };
            let wanted = format!("{}.{}", case.number, index + 1);
            if found.trim().trim_end_matches('.') != wanted {
                findings.add(&format!("/decision/{index}/number"), &[("found", &short(found)), ("wanted", &wanted)]);
            }
        }
    }),
};

pub static DATE_UNREADABLE: Rule = Rule {
    code: "date-unreadable",
    weight: Weight::Error,
    needs: &[Datum::DecisionPoints],
    words: Words {
        ru: "срок «{text}» — не дата вида 2026-12-31. Исправьте его.",
        en: "the due date “{text}” is not a date like 2026-12-31. Correct it.",
        de: "die Frist „{text}“ ist kein Datum wie 2026-12-31. Berichtigen Sie sie.",
    },
    subject: Subject::Question(|case, findings| {
        for (index, point) in case.question.decision.iter().enumerate() {
            if let Some(due) = &point.due
                && (due.len() != 10 || due.parse::<jiff::civil::Date>().is_err())
            {
                findings.add(&format!("/decision/{index}/due"), &[("text", &short(due))]);
            }
        }
    }),
};

pub static DUE_BEFORE_THE_SITTING: Rule = Rule {
    code: "due-before-the-sitting",
    weight: Weight::Warning,
    needs: &[Datum::DecisionPoints],
    words: Words {
        ru: "срок «{due}» наступил до заседания ({date}). Проверьте срок.",
        en: "the due date “{due}” is before the sitting ({date}). Check it.",
        de: "die Frist „{due}“ liegt vor der Sitzung ({date}). Prüfen Sie sie.",
    },
    subject: Subject::Question(|case, findings| {
        // The local date of the start, as it is written.
        let Some(date) = case.sitting.agenda.start.get(..10).and_then(|date| date.parse::<jiff::civil::Date>().ok()) else { return };
        for (index, point) in case.question.decision.iter().enumerate() {
            if let Some(due) = point.due.as_ref().filter(|due| due.len() == 10)
                && due.parse::<jiff::civil::Date>().is_ok_and(|due| due < date)
            {
                findings.add(&format!("/decision/{index}/due"), &[("due", due), ("date", &date.to_string())]);
            }
        }
    }),
};
