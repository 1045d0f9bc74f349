//! The sitting as rules see it: who is who, and who was there when.
//!
//! A question lasts from its own start to the next question's. Whoever was there for a part of it only may or may not have voted, and rules give the agenda the
//! benefit of that doubt: a member who arrives during the discussion and votes is no contradiction.

use crate::{
    domain::{
        agenda::{Agenda, Attendance, Member, Question, Share},
        time::Timestamp,
    },
    generator::format::AgendaFormat,
};
use std::collections::{HashMap, HashSet};

/// An agenda with what follows from it.
#[derive(Debug)]
pub struct Sitting<'a> {
    pub agenda: &'a Agenda,
    pub format: AgendaFormat,
    pub start: Option<Timestamp>,
    pub end: Option<Timestamp>,
    members: HashMap<&'a str, &'a Member>,
    guests: HashSet<&'a str>,
    /// For each question its rank by `order`.
    ranks: Vec<usize>,
    /// For each question its printed number.
    numbers: Vec<String>,
    /// When the questions that say so were called, in time.
    starts: Vec<Timestamp>,
}

/// One question in its sitting.
#[derive(Debug)]
pub struct Case<'a> {
    pub sitting: &'a Sitting<'a>,
    pub question: &'a Question,
    /// Its place in the source's list.
    pub place: usize,
    /// Its printed number.
    pub number: &'a str,
}

/// Whether somebody was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    Throughout,
    /// For a part of the question, or nobody knows.
    Perhaps,
    No,
}

/// How many, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub at_least: u32,
    pub at_most: u32,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at_least == self.at_most { write!(f, "{}", self.at_least) } else { write!(f, "{}–{}", self.at_least, self.at_most) }
    }
}

impl<'a> Sitting<'a> {
    #[must_use]
    pub fn of(agenda: &'a Agenda, format: AgendaFormat) -> Self {
        let mut by_order: Vec<usize> = (0..agenda.questions.len()).collect();
        by_order.sort_by_key(|&index| agenda.questions[index].order);
        let mut ranks = vec![0; by_order.len()];
        for (rank, &index) in by_order.iter().enumerate() {
            ranks[index] = rank;
        }
        let numbers = agenda.questions.iter().zip(&ranks).map(|(question, rank)| printed_number(question, *rank)).collect();
        let mut starts: Vec<Timestamp> = agenda.questions.iter().filter_map(|question| time(question.start.as_deref())).collect();
        starts.sort_unstable();
        Self {
            agenda,
            format,
            start: agenda.start.parse().ok(),
            end: time(agenda.end.as_deref()),
            members: agenda.members.iter().map(|member| (member.id.as_str(), member)).collect(),
            guests: agenda.invited.iter().map(|guest| guest.id.as_str()).collect(),
            ranks,
            numbers,
            starts,
        }
    }

    /// The question at an index of the agenda.
    #[must_use]
    pub fn case(&'a self, index: usize, place: usize) -> Case<'a> {
        Case { sitting: self, question: &self.agenda.questions[index], place, number: &self.numbers[index] }
    }

    /// Indexes of the questions in the order of the agenda.
    #[must_use]
    pub fn in_order(&self) -> Vec<usize> {
        let mut indexes: Vec<usize> = (0..self.ranks.len()).collect();
        indexes.sort_by_key(|&index| self.ranks[index]);
        indexes
    }

    #[must_use]
    pub fn number(&self, index: usize) -> &str {
        &self.numbers[index]
    }

    /// The question before this one that has its printed number.
    #[must_use]
    pub fn has_number_before(&self, case: &Case<'_>) -> Option<&'a Question> {
        let mut earlier =
            self.agenda.questions.iter().zip(&self.numbers).take_while(|(question, _)| !std::ptr::eq(*question, case.question));
        earlier.find(|(_, number)| *number == case.number).map(|(question, _)| question)
    }

    #[must_use]
    pub fn member(&self, id: &str) -> Option<&'a Member> {
        self.members.get(id).copied()
    }

    /// Whether the id is a member's or an invited person's.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        self.members.contains_key(id) || self.guests.contains(id)
    }

    /// The name to print for an id.
    #[must_use]
    pub fn name_of(&self, id: &str) -> String {
        let guest = || self.agenda.invited.iter().find(|guest| guest.id == id).map(|guest| guest.name.clone());
        self.member(id).map(|member| member.name.clone()).or_else(guest).unwrap_or_else(|| id.to_owned())
    }

    /// All members with a voting right, there or not.
    #[must_use]
    pub fn voting_members(&self) -> u32 {
        count(self.agenda.members.iter().filter(|member| member.voting_right))
    }

    /// Who presides, if it is said and a member.
    #[must_use]
    pub fn chair(&self) -> Option<&'a Member> {
        self.member(self.agenda.chair.as_deref()?)
    }

    /// Who keeps the minutes, if it is said and a member.
    #[must_use]
    pub fn secretary(&self) -> Option<&'a Member> {
        self.member(self.agenda.secretary.as_deref()?)
    }

    /// How many voting members the body needs to decide, if its rules are known.
    #[must_use]
    pub fn quorum(&self) -> Option<u32> {
        let all = self.voting_members();
        Some(match self.agenda.rules.as_ref()?.quorum {
            Share::MoreThanHalf => all / 2 + 1,
            Share::Half => all.div_ceil(2),
            Share::TwoThirds => all.saturating_mul(2).div_ceil(3),
            Share::AtLeast(number) => number,
        })
    }
}

impl Case<'_> {
    /// Whether a member was there.
    #[must_use]
    pub fn there(&self, member: &Member) -> There {
        if member.attendance == Attendance::Absent {
            return There::No;
        }
        if member.presence.is_empty() {
            return There::Throughout;
        }
        let Some(start) = time(self.question.start.as_deref()) else { return There::Perhaps };
        let later = self.sitting.starts.partition_point(|other| *other <= start);
        let next = self.sitting.starts.get(later).copied().or(self.sitting.end);
        let mut there = There::No;
        for interval in &member.presence {
            let (from, to) = (time(interval.from.as_deref()), time(interval.to.as_deref()));
            if (interval.from.is_some() && from.is_none()) || (interval.to.is_some() && to.is_none()) {
                return There::Perhaps;
            }
            // Open ends reach as far as the sitting.
            let came_in_time = from.is_none_or(|from| from <= start);
            let stayed = to.is_none_or(|to| next.is_some_and(|next| to >= next));
            let touches = from.is_none_or(|from| next.is_none_or(|next| from < next)) && to.is_none_or(|to| to > start);
            if came_in_time && stayed {
                return There::Throughout;
            }
            if touches {
                there = There::Perhaps;
            }
        }
        there
    }

    #[must_use]
    pub fn is_recused(&self, id: &str) -> bool {
        self.question.recusals.iter().any(|recusal| recusal.member == id)
    }

    /// Members who could vote on this question: with a voting right, there, and not recused.
    #[must_use]
    pub fn entitled(&self) -> Count {
        let entitled = || self.sitting.agenda.members.iter().filter(|member| member.voting_right && !self.is_recused(&member.id));
        Count {
            at_least: count(entitled().filter(|member| self.there(member) == There::Throughout)),
            at_most: count(entitled().filter(|member| self.there(member) != There::No)),
        }
    }
}

/// A time of the agenda; `None` if it is missing or unreadable (a rule of its own tells that).
#[must_use]
pub fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// The number that is printed: the question's own, else its place.
fn printed_number(question: &Question, rank: usize) -> String {
    match question.number.as_deref().map(|number| number.trim().trim_end_matches('.')) {
        Some(number) if !number.is_empty() => number.to_owned(),
        _ => (rank + 1).to_string(),
    }
}
