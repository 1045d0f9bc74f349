//! Everyone who is named must be a member or an invited person.

use super::{
    rule::{Findings, Rule, Subject, Weight},
    sitting::{Case, Sitting, There},
};
use crate::{
    domain::agenda::Attendance,
    generator::{
        format::Datum,
        words::{Words, short},
    },
};

pub static UNKNOWN_OFFICER: Rule = Rule {
    code: "unknown-person",
    weight: Weight::Error,
    needs: &[Datum::Officers],
    words: Words {
        ru: "«{id}» нет среди членов и приглашённых. Внесите это лицо в список или исправьте идентификатор.",
        en: "“{id}” is neither a member nor invited. Add the person or correct the id.",
        de: "„{id}“ ist weder Mitglied noch geladen. Tragen Sie die Person ein oder berichtigen Sie die Kennung.",
    },
    subject: Subject::Agenda(officers),
};

fn officers(sitting: &Sitting<'_>, findings: &mut Findings<'_>) {
    let agenda = sitting.agenda;
    if let Some(chair) = &agenda.chair
        && sitting.member(chair).is_none()
    {
        findings.add("/chair", &[("id", &short(chair))]);
    }
    if let Some(secretary) = &agenda.secretary
        && !sitting.knows(secretary)
    {
        findings.add("/secretary", &[("id", &short(secretary))]);
    }
    for (index, teller) in agenda.tellers.iter().enumerate() {
        if !sitting.knows(teller) {
            findings.add(&format!("/tellers/{index}"), &[("id", &short(teller))]);
        }
    }
}

pub static UNKNOWN_PERSON: Rule = Rule {
    code: "unknown-person",
    weight: Weight::Error,
    needs: &[Datum::Speakers],
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
    weight: Weight::Error,
    needs: &[Datum::Officers, Datum::Attendance],
    words: Words {
        ru: "Председательствующий {name} отмечен как отсутствующий. Исправьте явку или укажите того, кто вёл заседание.",
        en: "{name}, who presides, is marked absent. Correct the attendance or name who presided.",
        de: "{name} leitet die Sitzung, ist aber als abwesend vermerkt. Berichtigen Sie die Anwesenheit oder den Vorsitz.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if let Some(chair) = sitting.chair()
            && chair.attendance == Attendance::Absent
        {
            findings.add("/chair", &[("name", &short(&chair.name))]);
        }
    }),
};

pub static SECRETARY_ABSENT: Rule = Rule {
    code: "secretary-absent",
    weight: Weight::Error,
    needs: &[Datum::Officers, Datum::Attendance],
    words: Words {
        ru: "Секретарь {name} отмечен(а) как отсутствующий(ая). Исправьте явку или укажите того, кто вёл протокол.",
        en: "{name}, who keeps the minutes, is marked absent. Correct the attendance or name who kept them.",
        de: "{name} führt das Protokoll, ist aber als abwesend vermerkt. Berichtigen Sie die Anwesenheit oder die Protokollführung.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if let Some(secretary) = sitting.secretary()
            && secretary.attendance == Attendance::Absent
        {
            findings.add("/secretary", &[("name", &short(&secretary.name))]);
        }
    }),
};

pub static CHAIR_NOT_THERE: Rule = Rule {
    code: "chair-not-there",
    weight: Weight::Warning,
    needs: &[Datum::Officers, Datum::Presence],
    words: Words {
        ru: "председательствующий {name} при рассмотрении вопроса отсутствовал(а). Укажите в протоколе, кто вёл заседание.",
        en: "{name}, who presides, was not there at this question. Say in the protocol who presided.",
        de: "{name} leitet die Sitzung, war bei diesem Punkt aber nicht anwesend. Vermerken Sie, wer den Vorsitz führte.",
    },
    subject: Subject::Question(|case, findings| {
        // That the chair was absent altogether is told once, for the whole agenda.
        if let Some(chair) = case.sitting.chair()
            && chair.attendance != Attendance::Absent
            && case.there(chair) == There::No
        {
            findings.add("", &[("name", &short(&chair.name))]);
        }
    }),
};

pub static SPEAKER_NOT_THERE: Rule = Rule {
    code: "speaker-not-there",
    weight: Weight::Warning,
    needs: &[Datum::Speakers, Datum::Attendance],
    words: Words {
        ru: "{name} докладывает или выступает, но при рассмотрении вопроса отсутствовал(а). Исправьте явку или укажите того, кто говорил.",
        en: "{name} reports or speaks, but was not there at this question. Correct the attendance or name who spoke.",
        de: "{name} trägt vor oder spricht, war bei diesem Punkt aber nicht anwesend. Berichtigen Sie die Anwesenheit oder den Namen.",
    },
    subject: Subject::Question(|case, findings| {
        let rapporteur = case.question.rapporteur.iter().map(|id| (id, "/rapporteur".to_owned()));
        let speakers = case.question.discussed.iter().enumerate();
        let speakers = speakers.map(|(index, speech)| (&speech.speaker, format!("/discussed/{index}/speaker")));
        for (id, pointer) in rapporteur.chain(speakers) {
            if let Some(member) = case.sitting.member(id)
                && case.there(member) == There::No
            {
                findings.add(&pointer, &[("name", &short(&member.name))]);
            }
        }
    }),
};
