//! Ids that are given twice, and texts without which there is nothing to print.

use super::{
    rule::{Findings, Rule, Subject, Weight},
    sitting::{Case, Sitting},
};
use crate::generator::{
    format::Datum,
    words::{Words, short},
};
use std::collections::HashMap;

pub static NO_QUESTIONS: Rule = Rule {
    code: "no-questions",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "В повестке нет ни одного вопроса. Внесите вопросы.",
        en: "The agenda has no questions. Enter them.",
        de: "Die Tagesordnung hat keine Punkte. Tragen Sie sie ein.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if sitting.agenda.questions.is_empty() {
            findings.add("/questions", &[]);
        }
    }),
};

const MISSING: Words = Words {
    ru: "не заполнен текст («{field}»). Заполните его.",
    en: "a text is empty (“{field}”). Fill it in.",
    de: "ein Text ist leer („{field}“). Füllen Sie ihn aus.",
};

pub static TEXT_MISSING: Rule =
    Rule { code: "text-missing", weight: Weight::Error, needs: &[], words: MISSING, subject: Subject::Agenda(texts_of_agenda) };

fn texts_of_agenda(sitting: &Sitting<'_>, findings: &mut Findings<'_>) {
    let agenda = sitting.agenda;
    for (text, pointer) in [(&agenda.title, "/title"), (&agenda.body.organization, "/body/organization"), (&agenda.body.name, "/body/name")]
    {
        require(text, pointer, findings);
    }
    for (index, member) in agenda.members.iter().enumerate() {
        require(&member.name, &format!("/members/{index}/name"), findings);
    }
    for (index, guest) in agenda.invited.iter().enumerate() {
        require(&guest.name, &format!("/invited/{index}/name"), findings);
    }
}

pub static QUESTION_TEXT_MISSING: Rule =
    Rule { code: "text-missing", weight: Weight::Error, needs: &[], words: MISSING, subject: Subject::Question(texts_of_question) };

fn texts_of_question(case: &Case<'_>, findings: &mut Findings<'_>) {
    require(&case.question.title, "/title", findings);
    for (index, point) in case.question.decision.iter().enumerate() {
        require(&point.text, &format!("/decision/{index}/text"), findings);
    }
}

fn require(text: &str, pointer: &str, findings: &mut Findings<'_>) {
    if text.trim().is_empty() {
        findings.add(pointer, &[("field", pointer.rsplit('/').next().unwrap_or_default())]);
    }
}

pub static DUPLICATE_PERSON: Rule = Rule {
    code: "duplicate-id",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "Идентификатор «{id}» указан дважды: здесь и в {first}. Оставьте каждому свой.",
        en: "The id “{id}” is given twice: here and at {first}. Give each its own.",
        de: "Die Kennung „{id}“ ist zweimal vergeben: hier und bei {first}. Geben Sie jedem eine eigene.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        let members = sitting.agenda.members.iter().enumerate().map(|(index, member)| (&member.id, format!("/members/{index}")));
        let guests = sitting.agenda.invited.iter().enumerate().map(|(index, guest)| (&guest.id, format!("/invited/{index}")));
        let mut seen: HashMap<&str, String> = HashMap::new();
        for (id, pointer) in members.chain(guests) {
            match seen.get(id.as_str()) {
                Some(first) => findings.add(&format!("{pointer}/id"), &[("id", &short(id)), ("first", first)]),
                None => {
                    seen.insert(id, pointer);
                }
            }
        }
    }),
};

pub static DUPLICATE_QUESTION: Rule = Rule {
    code: "duplicate-id",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "идентификатор вопроса «{id}» уже занят вопросом {other}. Дайте вопросу свой.",
        en: "the question's id “{id}” is that of question {other}, too. Give it its own.",
        de: "die Kennung „{id}“ hat auch Punkt {other}. Geben Sie dem Punkt eine eigene.",
    },
    subject: Subject::Question(|case, findings| {
        if let Some(other) = twin(case, |question| &question.id) {
            findings.add("/id", &[("id", &short(&case.question.id)), ("other", other)]);
        }
    }),
};

pub static DUPLICATE_ORDER: Rule = Rule {
    code: "duplicate-order",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "место в повестке ({order}) уже занято вопросом {other}. Укажите разные места.",
        en: "the place in the agenda ({order}) is that of question {other}, too. Give them different places.",
        de: "den Platz {order} in der Tagesordnung hat auch Punkt {other}. Geben Sie verschiedene Plätze an.",
    },
    subject: Subject::Question(|case, findings| {
        if let Some(other) = twin(case, |question| &question.order) {
            findings.add("/order", &[("order", &case.question.order.to_string()), ("other", other)]);
        }
    }),
};

/// The printed number of an earlier question that has the same value.
fn twin<'a, T: PartialEq>(case: &Case<'a>, value: impl Fn(&crate::domain::agenda::Question) -> &T) -> Option<&'a str> {
    let questions = &case.sitting.agenda.questions;
    let earlier = questions.iter().take_while(|question| !std::ptr::eq(*question, case.question));
    let index = earlier.enumerate().find(|(_, question)| value(question) == value(case.question))?.0;
    Some(case.sitting.number(index))
}

pub static DUPLICATE_NUMBER: Rule = Rule {
    code: "duplicate-number",
    weight: Weight::Warning,
    needs: &[Datum::UniqueNumbers],
    words: Words {
        ru: "номер {number} уже есть у другого вопроса (место в повестке {other}). Исправьте номер или уберите его.",
        en: "the number {number} is that of another question (place {other}), too. Correct the number or leave it out.",
        de: "die Nummer {number} hat auch ein anderer Punkt (Platz {other}). Berichtigen Sie die Nummer oder lassen Sie sie weg.",
    },
    subject: Subject::Question(|case, findings| {
        if let Some(other) = case.sitting.has_number_before(case) {
            findings.add("/number", &[("number", &short(case.number)), ("other", &other.order.to_string())]);
        }
    }),
};
