//! Everyone who is named must be a member or an invited person.

use super::{
    rule::{Findings, Rule, Severity, Subject},
    sitting::{Case, Sitting},
};
use crate::{
    domain::agenda::Attendance,
    generator::words::{Words, short},
};

pub static UNKNOWN_OFFICER: Rule = Rule {
    code: "unknown-person",
    severity: Severity::Error,
    words: Words {
        ru: "«{id}» нет среди членов и приглашённых. Внесите это лицо в список или исправьте идентификатор.",
        en: "“{id}” is neither a member nor invited. Add the person or correct the id.",
        de: "„{id}“ ist weder Mitglied noch geladen. Tragen Sie die Person ein oder berichtigen Sie die Kennung.",
    },
    subject: Subject::Agenda(officers),
};

fn officers(sitting: &Sitting<'_>, findings: &mut Findings<'_>) {
    let agenda = sitting.agenda;
    if sitting.member(&agenda.chair).is_none() {
        findings.add("/chair", &[("id", &short(&agenda.chair))]);
    }
    if !sitting.knows(&agenda.secretary) {
        findings.add("/secretary", &[("id", &short(&agenda.secretary))]);
    }
    for (index, teller) in agenda.tellers.iter().enumerate() {
        if !sitting.knows(teller) {
            findings.add(&format!("/tellers/{index}"), &[("id", &short(teller))]);
        }
    }
}

pub static UNKNOWN_PERSON: Rule = Rule {
    code: "unknown-person",
    severity: Severity::Error,
    words: Words {
        ru: "«{id}» нет среди членов и приглашённых. Внесите это лицо в список или исправьте идентификатор.",
        en: "“{id}” is neither a member nor invited. Add the person or correct the id.",
        de: "„{id}“ ist weder Mitglied noch geladen. Tragen Sie die Person ein oder berichtigen Sie die Kennung.",
    },
    subject: Subject::Question(named_in_question),
};

fn named_in_question(case: &Case<'_>, findings: &mut Findings<'_>) {
    let question = case.question;
    let mut check = |id: &str, pointer: String, members_only: bool| {
        let known = if members_only { case.sitting.member(id).is_some() } else { case.sitting.knows(id) };
        if !known {
            findings.add(&pointer, &[("id", &short(id))]);
        }
    };
    if let Some(rapporteur) = &question.rapporteur {
        check(rapporteur, "/rapporteur".to_owned(), false);
    }
    for (index, speech) in question.discussed.iter().enumerate() {
        check(&speech.speaker, format!("/discussed/{index}/speaker"), false);
    }
    for (index, recusal) in question.recusals.iter().enumerate() {
        check(&recusal.member, format!("/recusals/{index}/member"), true);
    }
    let Some(vote) = &question.vote else { return };
    for (index, named) in vote.named.iter().enumerate() {
        check(&named.member, format!("/vote/named/{index}/member"), true);
    }
    for (index, dissent) in vote.dissent.iter().enumerate() {
        check(&dissent.member, format!("/vote/dissent/{index}/member"), true);
    }
}

pub static CHAIR_ABSENT: Rule = Rule {
    code: "chair-absent",
    severity: Severity::Error,
    words: Words {
        ru: "Председательствующий {name} отмечен как отсутствующий. Исправьте явку или укажите того, кто вёл заседание.",
        en: "{name}, who presides, is marked absent. Correct the attendance or name who presided.",
        de: "{name} leitet die Sitzung, ist aber als abwesend vermerkt. Berichtigen Sie die Anwesenheit oder den Vorsitz.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if let Some(chair) = sitting.member(&sitting.agenda.chair)
            && chair.attendance == Attendance::Absent
        {
            findings.add("/chair", &[("name", &short(&chair.name))]);
        }
    }),
};
