//! Who was there when: the attendance at a moment, and the comings and goings in between.

use super::words::Present;
use crate::domain::{
    agenda::{Agenda, Attendance, Member},
    time::Timestamp,
};

/// A coming or going during the sitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Movement {
    pub at: Timestamp,
    /// The time as the agenda gives it, for printing.
    pub text: String,
    pub arrives: bool,
    /// Members' names; several move at the same moment.
    pub names: Vec<String>,
    /// After it.
    pub present: Present,
}

/// Whether the member took part at all, here or from elsewhere.
pub(super) fn took_part(member: &Member) -> bool {
    member.attendance != Attendance::Absent
}

/// Whether the member was there at that moment. Without intervals: throughout. A time that cannot be read limits nothing: CHECK reports it.
pub(super) fn is_present(member: &Member, at: Timestamp) -> bool {
    took_part(member)
        && (member.presence.is_empty()
            || member.presence.iter().any(|interval| {
                let from = interval.from.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
                let to = interval.to.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
                from.is_none_or(|from| from <= at) && to.is_none_or(|to| at < to)
            }))
}

pub(super) fn count(agenda: &Agenda, at: Timestamp) -> Present {
    Present { now: agenda.members.iter().filter(|member| is_present(member, at)).count(), total: agenda.members.len() }
}

/// All comings and goings after the opening and before the close, in order of time.
pub(super) fn movements(agenda: &Agenda) -> Vec<Movement> {
    let opened = agenda.start.parse::<Timestamp>().ok();
    let closed = agenda.end.as_deref().and_then(|end| end.parse::<Timestamp>().ok());
    let mut found: Vec<Movement> = Vec::new();
    for member in agenda.members.iter().filter(|member| took_part(member)) {
        for interval in &member.presence {
            for (text, arrives) in [(&interval.from, true), (&interval.to, false)] {
                let Some((text, at)) = text.as_ref().and_then(|text| Some((text, text.parse::<Timestamp>().ok()?))) else { continue };
                let within = opened.is_none_or(|opened| at > opened) && closed.is_none_or(|closed| at < closed);
                if !within {
                    continue;
                }
                let name = super::text::line(&member.name);
                match found.iter_mut().find(|other| other.at == at && other.arrives == arrives) {
                    Some(same) => same.names.push(name),
                    None => found.push(Movement { at, text: text.clone(), arrives, names: vec![name], present: count(agenda, at) }),
                }
            }
        }
    }
    found.sort_by_key(|movement| (movement.at, movement.arrives));
    found
}
