//! Dissent that somebody wants on record.

use super::{
    rule::{Rule, Subject, Weight},
    sitting::There,
};
use crate::{
    domain::agenda::Choice,
    generator::{
        format::Datum,
        words::{Words, short},
    },
};

pub static DISSENTER_TOOK_NO_PART: Rule = Rule {
    code: "dissenter-took-no-part",
    weight: Weight::Error,
    needs: &[Datum::Dissent, Datum::Attendance],
    words: Words {
        ru: "записано особое мнение {name}, но в рассмотрении вопроса это лицо не участвовало. Исправьте явку, отвод или особое мнение.",
        en: "a dissent of {name} is on record, who took no part in this question. Correct the attendance, the recusal or the dissent.",
        de: "eine abweichende Meinung von {name} ist vermerkt, beteiligt war die Person bei diesem Punkt aber nicht. Berichtigen Sie Anwesenheit, Befangenheit oder Meinung.",
    },
    subject: Subject::Question(|case, findings| {
        for (index, dissent) in case.question.vote.iter().flat_map(|vote| &vote.dissent).enumerate() {
            if let Some(member) = case.sitting.member(&dissent.member)
                && (case.there(member) == There::No || case.is_recused(&member.id))
            {
                findings.add(&format!("/vote/dissent/{index}/member"), &[("name", &short(&member.name))]);
            }
        }
    }),
};

pub static DISSENT_OF_A_SUPPORTER: Rule = Rule {
    code: "dissent-of-a-supporter",
    weight: Weight::Warning,
    needs: &[Datum::Dissent, Datum::NamedVotes],
    words: Words {
        ru: "записано особое мнение {name}, а голос подан «за». Проверьте поимённый список.",
        en: "a dissent of {name} is on record, who voted for. Compare with the roll.",
        de: "eine abweichende Meinung von {name} ist vermerkt, die Stimme lautet aber „dafür“. Vergleichen Sie mit der Liste.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(vote) = &case.question.vote else { return };
        for (index, dissent) in vote.dissent.iter().enumerate() {
            let is_supporter = |named: &crate::domain::agenda::NamedVote| named.member == dissent.member && named.choice == Choice::For;
            if vote.named.iter().any(is_supporter) {
                let name = short(&case.sitting.name_of(&dissent.member));
                findings.add(&format!("/vote/dissent/{index}/member"), &[("name", &name)]);
            }
        }
    }),
};
