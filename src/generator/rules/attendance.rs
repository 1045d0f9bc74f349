//! What is said of a member's attendance must not contradict itself.

use super::{
    rule::{Rule, Subject, Weight},
    sitting::time,
};
use crate::{
    domain::agenda::{Attendance, Interval},
    generator::{
        format::Datum,
        words::{Words, short},
    },
};

/// Never changes its meaning; the three rules below tell apart what exactly is wrong.
const CODE: &str = "attendance-contradictory";

pub static ABSENT_AND_THERE: Rule = Rule {
    code: CODE,
    weight: Weight::Error,
    needs: &[Datum::Presence],
    words: Words {
        ru: "{name}: отмечено отсутствие, но указано время присутствия. Исправьте явку.",
        en: "{name} is marked absent, but a time of attendance is given. Correct the attendance.",
        de: "{name} ist als abwesend vermerkt, es ist aber eine Zeit der Anwesenheit angegeben. Berichtigen Sie die Anwesenheit.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        for (index, member) in sitting.agenda.members.iter().enumerate() {
            if member.attendance == Attendance::Absent && !member.presence.is_empty() {
                findings.add(&format!("/members/{index}/presence"), &[("name", &short(&member.name))]);
            }
        }
    }),
};

pub static PRESENT_WITH_A_REASON_FOR_ABSENCE: Rule = Rule {
    code: CODE,
    weight: Weight::Error,
    needs: &[Datum::Attendance],
    words: Words {
        ru: "{name}: указана причина отсутствия («{reason}»), но отмечено присутствие. Исправьте явку или удалите причину.",
        en: "{name} has a reason for absence (“{reason}”), but is marked present. Correct the attendance or remove the reason.",
        de: "{name} hat einen Grund der Abwesenheit („{reason}“), ist aber als anwesend vermerkt. Berichtigen Sie die Anwesenheit oder entfernen Sie den Grund.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        for (index, member) in sitting.agenda.members.iter().enumerate() {
            // Who came late or left early was absent for a part, and may have a reason for it.
            if let Some(reason) = &member.absence_reason
                && member.attendance != Attendance::Absent
                && member.presence.is_empty()
            {
                let pointer = format!("/members/{index}/absenceReason");
                findings.add(&pointer, &[("name", &short(&member.name)), ("reason", &short(reason))]);
            }
        }
    }),
};

pub static INTERVALS_OUT_OF_ORDER: Rule = Rule {
    code: CODE,
    weight: Weight::Error,
    needs: &[Datum::Presence],
    words: Words {
        ru: "{name}: время ухода раньше времени прихода, или промежутки присутствия пересекаются. Исправьте время.",
        en: "{name} leaves before coming, or the times of attendance overlap. Correct the times.",
        de: "{name} geht vor dem Kommen, oder die Zeiten der Anwesenheit überschneiden sich. Berichtigen Sie die Zeiten.",
    },
    subject: Subject::Agenda(|sitting, findings| {
        for (index, member) in sitting.agenda.members.iter().enumerate() {
            for (at, interval) in member.presence.iter().enumerate() {
                let before = at.checked_sub(1).map(|before| &member.presence[before]);
                if ends_before_it_starts(interval) || before.is_some_and(|before| overlaps(before, interval)) {
                    findings.add(&format!("/members/{index}/presence/{at}"), &[("name", &short(&member.name))]);
                }
            }
        }
    }),
};

fn ends_before_it_starts(interval: &Interval) -> bool {
    time(interval.from.as_deref()).zip(time(interval.to.as_deref())).is_some_and(|(from, to)| to <= from)
}

/// Whether one interval is not over when the next begins. An open end leaves no room for a next one, and an open beginning none for one before.
fn overlaps(before: &Interval, next: &Interval) -> bool {
    match (&before.to, &next.from) {
        (Some(to), Some(from)) => time(Some(to)).zip(time(Some(from))).is_some_and(|(to, from)| from < to),
        _ => true,
    }
}
