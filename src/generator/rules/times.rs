//! Times: readable, and inside the sitting.

use super::{
    rule::{Findings, Rule, Subject, Weight},
    sitting::{Sitting, time},
};
use crate::{
    domain::{agenda::Attendance, time::Timestamp},
    generator::{
        format::Datum,
        words::{Words, short},
    },
};
use jiff::{civil::DateTime, tz::TimeZoneDatabase};

const UNREADABLE: Words = Words {
    ru: "«{text}» — не время с часовым сдвигом. Запишите его так: 2026-11-30T10:00:00+03:00.",
    en: "“{text}” is not a time with an offset. Write it like 2026-11-30T10:00:00+03:00.",
    de: "„{text}“ ist keine Zeit mit Zeitversatz. Schreiben Sie sie so: 2026-11-30T10:00:00+03:00.",
};

pub static TIME_UNREADABLE: Rule =
    Rule { code: "time-unreadable", weight: Weight::Error, needs: &[], words: UNREADABLE, subject: Subject::Agenda(times_of_agenda) };

fn times_of_agenda(sitting: &Sitting<'_>, findings: &mut Findings<'_>) {
    readable(Some(&sitting.agenda.start), "/start", findings);
    readable(sitting.agenda.end.as_ref(), "/end", findings);
    for (member, person) in sitting.agenda.members.iter().enumerate() {
        for (index, interval) in person.presence.iter().enumerate() {
            readable(interval.from.as_ref(), &format!("/members/{member}/presence/{index}/from"), findings);
            readable(interval.to.as_ref(), &format!("/members/{member}/presence/{index}/to"), findings);
        }
    }
}

pub static QUESTION_TIME_UNREADABLE: Rule = Rule {
    code: "time-unreadable",
    weight: Weight::Error,
    needs: &[Datum::QuestionTimes],
    words: UNREADABLE,
    subject: Subject::Question(|case, findings| readable(case.question.start.as_ref(), "/start", findings)),
};

fn readable(text: Option<&String>, pointer: &str, findings: &mut Findings<'_>) {
    // Some foreign formats write what the clock on the wall showed, and it is printed so.
    let is_wall_clock = |text: &str| !findings.format().carries(Datum::Offsets) && text.parse::<DateTime>().is_ok();
    if let Some(text) = text
        && text.parse::<Timestamp>().is_err()
        && !is_wall_clock(text)
    {
        findings.add(pointer, &[("text", &short(text))]);
    }
}

pub static TIME_ZONE_UNKNOWN: Rule = Rule {
    code: "time-zone-unknown",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "Часовой пояс «{zone}» неизвестен. Укажите название из базы IANA, например Europe/Moscow.",
        en: "The time zone “{zone}” is unknown. Give its IANA name, such as Europe/Moscow.",
        de: "Die Zeitzone „{zone}“ ist unbekannt. Geben Sie ihren IANA-Namen an, etwa Europe/Berlin.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        // The bundled database: what is a zone must not depend on the machine.
        if let Some(zone) = &sitting.agenda.time_zone
            && TimeZoneDatabase::bundled().get(zone).is_err()
        {
            findings.add("/timeZone", &[("zone", &short(zone))]);
        }
    }),
};

pub static TIME_ZONE_MISSING: Rule = Rule {
    code: "time-zone-missing",
    weight: Weight::Warning,
    needs: &[],
    words: Words {
        ru: "Часовой пояс не указан; время печатается так, как записано в повестке. Укажите timeZone.",
        en: "No time zone is given; times are printed as the agenda gives them. Give timeZone.",
        de: "Es ist keine Zeitzone angegeben; Zeiten werden so gedruckt, wie sie in der Tagesordnung stehen. Geben Sie timeZone an.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if sitting.agenda.time_zone.is_none() {
            findings.add("", &[]);
        }
    }),
};

pub static ENDS_BEFORE_IT_STARTS: Rule = Rule {
    code: "sitting-ends-before-it-starts",
    weight: Weight::Error,
    needs: &[],
    words: Words {
        ru: "Заседание закончилось ({end}) раньше, чем началось ({start}). Исправьте время.",
        en: "The sitting ends ({end}) before it starts ({start}). Correct the times.",
        de: "Die Sitzung endet ({end}), bevor sie beginnt ({start}). Berichtigen Sie die Zeiten.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        if let (Some(start), Some(end), Some(text)) = (sitting.start, sitting.end, &sitting.agenda.end)
            && end < start
        {
            findings.add("/end", &[("start", &short(&sitting.agenda.start)), ("end", &short(text))]);
        }
    }),
};

pub static PRESENCE_OUTSIDE_SITTING: Rule = Rule {
    code: "time-outside-sitting",
    weight: Weight::Error,
    needs: &[Datum::Presence],
    words: Words {
        ru: "{name}: время присутствия ({text}) вне заседания. Исправьте его.",
        en: "{name}: the time of attendance ({text}) is outside the sitting. Correct it.",
        de: "{name}: die Zeit der Anwesenheit ({text}) liegt außerhalb der Sitzung. Berichtigen Sie sie.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        for (index, member) in sitting.agenda.members.iter().enumerate() {
            for (at, interval) in member.presence.iter().enumerate() {
                for (text, field) in [(&interval.from, "from"), (&interval.to, "to")] {
                    if let (Some(text), Some(time)) = (text, time(text.as_deref()))
                        && is_outside(sitting, time)
                    {
                        let pointer = format!("/members/{index}/presence/{at}/{field}");
                        findings.add(&pointer, &[("name", &short(&member.name)), ("text", &short(text))]);
                    }
                }
            }
        }
    }),
};

pub static TIME_OUTSIDE_SITTING: Rule = Rule {
    code: "time-outside-sitting",
    weight: Weight::Error,
    needs: &[Datum::QuestionTimes],
    words: Words {
        ru: "начало рассмотрения ({text}) вне заседания. Исправьте время.",
        en: "it was called ({text}) outside the sitting. Correct the time.",
        de: "der Aufruf ({text}) liegt außerhalb der Sitzung. Berichtigen Sie die Zeit.",
    },
    subject: Subject::Question(|case, findings| {
        if let (Some(text), Some(time)) = (&case.question.start, time(case.question.start.as_deref()))
            && is_outside(case.sitting, time)
        {
            findings.add("/start", &[("text", &short(text))]);
        }
    }),
};

fn is_outside(sitting: &Sitting<'_>, time: Timestamp) -> bool {
    let ordered = sitting.start.zip(sitting.end).is_none_or(|(start, end)| start <= end);
    ordered && (sitting.start.is_some_and(|start| time < start) || sitting.end.is_some_and(|end| time > end))
}

pub static QUESTION_TIME_MISSING: Rule = Rule {
    code: "question-time-missing",
    weight: Weight::Warning,
    needs: &[Datum::Presence, Datum::QuestionTimes],
    words: Words {
        ru: "кто-то пришёл позже или ушёл раньше, а время рассмотрения не указано: кворум и голоса проверены не полностью. Укажите start.",
        en: "somebody came late or left early, but it is not said when the question was called: quorum and votes are checked in part only. Give start.",
        de: "jemand kam später oder ging früher, der Zeitpunkt des Aufrufs fehlt aber: Beschlussfähigkeit und Stimmen sind nur teilweise geprüft. Geben Sie start an.",
    },
    subject: Subject::Question(|case, findings| {
        let comings_and_goings = case
            .sitting
            .agenda
            .members
            .iter()
            .any(|member| member.voting_right && member.attendance != Attendance::Absent && !member.presence.is_empty());
        if comings_and_goings && case.question.vote.is_some() && case.question.start.is_none() {
            findings.add("", &[]);
        }
    }),
};
