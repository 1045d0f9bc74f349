//! Builds the document model from an agenda: requisites, attendance, one section a question, annexes, signatures.
//!
//! Building never fails: what an agenda cannot say is left out, what contradicts itself is printed as it stands. Judging it is CHECK's part.

use super::{
    annexes::{self, LIST_IN_ANNEX_FROM, Numbered},
    dates::{Zone, instant},
    model::{Annex, AnnexPage, Block, DocumentModel, Head, Section, Signature, TEMPLATE_VERSION},
    presence, section,
    text::{initials_first, line},
    words::{self, Present, Quorum, Words},
};
use crate::domain::{
    agenda::{Agenda, Attendance, Guest, Language, Member, Question, Share},
    time::Timestamp,
};
use std::collections::HashMap;

/// What every part of the builder looks things up in.
pub(super) struct Context<'a> {
    pub agenda: &'a Agenda,
    pub words: &'static dyn Words,
    pub zone: Zone,
    /// By `order`, never by printed number.
    pub questions: Vec<&'a Question>,
    people: HashMap<&'a str, (&'a str, Option<&'a str>)>,
}

impl Context<'_> {
    /// A person's name; an id that nobody has is printed itself, CHECK has reported it.
    pub(super) fn name(&self, id: &str) -> String {
        line(self.people.get(id).map_or(id, |(name, _)| name))
    }

    /// Name and position.
    pub(super) fn person(&self, id: &str) -> String {
        match self.people.get(id) {
            Some((name, Some(position))) => format!("{}, {}", line(name), line(position)),
            _ => self.name(id),
        }
    }

    pub(super) fn time(&self, text: &str) -> String {
        self.zone.wall_clock(text).map_or_else(|| line(text), |clock| self.words.time(clock.time()))
    }

    /// The printed number of a question.
    pub(super) fn number_of(&self, id: &str) -> Option<String> {
        self.questions
            .iter()
            .enumerate()
            .find(|(_, question)| question.id == id)
            .map(|(at, question)| section::printed_number(question, at + 1))
    }
}

impl DocumentModel {
    /// Words and orders everything. `number` is the protocol's registration number, `annexes` are the files to attach, the snapshot among them.
    #[must_use]
    pub fn build(agenda: &Agenda, number: &str, language: Language, annexes: &[Annex]) -> Self {
        let mut questions: Vec<&Question> = agenda.questions.iter().collect();
        questions.sort_by_key(|question| question.order);
        let guests = agenda.invited.iter().map(|guest| (guest.id.as_str(), (guest.name.as_str(), guest.position.as_deref())));
        let members = agenda.members.iter().map(|member| (member.id.as_str(), (member.name.as_str(), member.position.as_deref())));
        let context = Context {
            agenda,
            words: words::of(language),
            zone: Zone::named(agenda.time_zone.as_deref()),
            questions,
            people: guests.chain(members).collect(),
        };

        let attendance = AttendanceList::of(&context);
        let files = annexes::numbered(&context, annexes, attendance.annex().map_or(1, |number| number + 1));
        let head = head(&context, number);
        let opened = instant(&agenda.start);
        Self {
            template_version: TEMPLATE_VERSION.to_owned(),
            language,
            identity: format!("protocol-bridge:{}:{number}", agenda.agenda_id),
            title: context.words.title(&line(number), &line(&agenda.body.name), &head.date),
            author: line(&agenda.body.organization),
            timestamp: opened.unwrap_or_default().to_string(),
            opening: opening(&context, &attendance),
            contents: context.words.labels().agenda.to_owned(),
            sections: sections(&context, &files),
            closing: closing(&context, &attendance, &files),
            signatures: signatures(&context),
            annexes: attendance.page(&context).into_iter().chain(annexes::file_list(&context, &files)).collect(),
            attachments: annexes::attachments(&context, &files),
            head,
        }
    }
}

fn head(context: &Context<'_>, number: &str) -> Head {
    let agenda = context.agenda;
    Head {
        organization: line(&agenda.body.organization),
        kind: context.words.labels().kind.to_owned(),
        subject: context.words.subject(&line(&agenda.body.name)),
        meeting: line(&agenda.title),
        date: context.zone.wall_clock(&agenda.start).map_or_else(|| line(&agenda.start), |clock| context.words.date(clock.date())),
        number: context.words.number(&line(number)),
        place: agenda.place.as_deref().map(line).unwrap_or_default(),
    }
}

fn opening(context: &Context<'_>, attendance: &AttendanceList<'_>) -> Vec<Block> {
    let agenda = context.agenda;
    let labels = context.words.labels();
    let field = |label: &str, text: String| Block::Field { label: format!("{label}:"), text };
    let end = agenda.end.as_deref().map(|end| context.time(end));
    let mut blocks = vec![field(labels.opened, context.words.sitting(&context.time(&agenda.start), end.as_deref()))];
    blocks.extend(agenda.chair.as_deref().map(|chair| field(labels.chair, context.person(chair))));
    blocks.extend(agenda.secretary.as_deref().map(|secretary| field(labels.secretary, context.person(secretary))));
    if !agenda.tellers.is_empty() {
        let tellers: Vec<_> = agenda.tellers.iter().map(|id| context.name(id)).collect();
        blocks.push(field(labels.tellers, tellers.join(", ")));
    }
    if !agenda.members.is_empty() {
        blocks.extend(attendance.blocks(context));
    }
    let absent: Vec<&Member> = agenda.members.iter().filter(|member| !presence::took_part(member)).collect();
    if !absent.is_empty() {
        let absent = absent.iter().map(|member| {
            let reason = member.absence_reason.as_deref().map_or_else(|| labels.no_reason.to_owned(), line);
            format!("{} ({reason})", line(&member.name))
        });
        blocks.push(field(labels.absent, absent.collect::<Vec<_>>().join(", ")));
    }
    // Whoever keeps the minutes is there for that, and named above.
    let is_secretary = |guest: &Guest| agenda.secretary.as_ref() == Some(&guest.id);
    let invited: Vec<_> = agenda.invited.iter().filter(|guest| !is_secretary(guest)).map(|guest| context.person(&guest.id)).collect();
    if !invited.is_empty() {
        blocks.push(field(labels.invited, String::new()));
        blocks.push(Block::List { items: invited });
    }
    blocks.extend(quorum(agenda).map(|quorum| field(labels.quorum, context.words.quorum(quorum))));
    blocks
}

/// The quorum at the opening, if the body's rules are known.
fn quorum(agenda: &Agenda) -> Option<Quorum> {
    let opened: Option<Timestamp> = agenda.start.parse().ok();
    let entitled: Vec<&Member> = agenda.members.iter().filter(|member| member.voting_right).collect();
    let present =
        entitled.iter().filter(|member| opened.map_or_else(|| presence::took_part(member), |at| presence::is_present(member, at))).count();
    let all = entitled.len();
    let share = agenda.rules.as_ref()?.quorum;
    let needed = match share {
        Share::MoreThanHalf => all / 2 + 1,
        Share::Half => all.div_ceil(2),
        Share::TwoThirds => (2 * all).div_ceil(3),
        Share::AtLeast(number) => usize::try_from(number).unwrap_or(usize::MAX),
    };
    Some(Quorum { entitled: all, present, share, needed })
}

/// The sections, with arrivals and departures before the question that they preceded, or at the end of the last.
fn sections(context: &Context<'_>, files: &[Numbered<'_>]) -> Vec<Section> {
    let mut movements = presence::movements(context.agenda).into_iter().peekable();
    let mut sections: Vec<Section> = Vec::with_capacity(context.questions.len());
    for (at, question) in context.questions.iter().enumerate() {
        let started: Option<Timestamp> = question.start.as_deref().and_then(|start| start.parse().ok());
        let mut before = Vec::new();
        while let Some(movement) = movements.next_if(|movement| started.is_some_and(|started| movement.at <= started)) {
            before.push(note(context, &movement));
        }
        let mut section = section::build(context, question, at + 1, files);
        // A question's place in time is known by its start alone: whoever moved after it and before the next is named before the next.
        section.blocks.splice(0..0, before);
        sections.push(section);
    }
    if let Some(last) = sections.last_mut() {
        last.blocks.extend(movements.map(|movement| note(context, &movement)));
    }
    sections
}

fn note(context: &Context<'_>, movement: &presence::Movement) -> Block {
    let time = context.time(&movement.text);
    Block::Note {
        text: if movement.arrives {
            context.words.arrives(&time, &movement.names, movement.present)
        } else {
            context.words.leaves(&time, &movement.names, movement.present)
        },
    }
}

fn closing(context: &Context<'_>, attendance: &AttendanceList<'_>, files: &[Numbered<'_>]) -> Vec<Block> {
    let end = context.agenda.end.as_deref().map(|end| context.time(end));
    let closed = Block::Paragraph { text: context.words.closed(end.as_deref()) };
    std::iter::once(closed).chain(annexes::mark(context, attendance.annex(), files)).collect()
}

fn signatures(context: &Context<'_>) -> Vec<Signature> {
    let labels = context.words.labels();
    // Who signs is not always known: the name is then filled in by hand.
    let signed = |id: Option<&str>| {
        let Some(id) = id else { return String::new() };
        let name = context.name(id);
        if context.words.signs_initials_first() { initials_first(&name) } else { name }
    };
    vec![
        Signature { role: labels.chair.to_owned(), name: signed(context.agenda.chair.as_deref()) },
        Signature { role: labels.secretary.to_owned(), name: signed(context.agenda.secretary.as_deref()) },
    ]
}

/// Those who took part, printed in place or, when they are many, as an annex.
struct AttendanceList<'a> {
    members: Vec<&'a Member>,
    total: usize,
}

impl<'a> AttendanceList<'a> {
    fn of(context: &Context<'a>) -> Self {
        let members = context.agenda.members.iter().filter(|member| presence::took_part(member)).collect();
        Self { members, total: context.agenda.members.len() }
    }

    /// Its number among the annexes, if it is one.
    fn annex(&self) -> Option<usize> {
        (self.members.len() >= LIST_IN_ANNEX_FROM).then_some(1)
    }

    fn blocks(&self, context: &Context<'_>) -> Vec<Block> {
        let label = context.words.attended_label(self.members.len()).to_owned();
        let attended = context.words.attended(Present { now: self.members.len(), total: self.total });
        match self.annex() {
            Some(number) => {
                vec![Block::Field { label, text: format!("{attended}; {}.", context.words.list_in_annex(number)) }]
            }
            None => vec![Block::Field { label, text: format!("{attended}:") }, Block::List { items: self.items(context) }],
        }
    }

    fn items(&self, context: &Context<'_>) -> Vec<String> {
        self.members.iter().map(|member| attendee(context, member)).collect()
    }

    fn page(&self, context: &Context<'_>) -> Option<AnnexPage> {
        let number = self.annex()?;
        Some(AnnexPage {
            number: Some(context.words.annex(number)),
            title: context.words.labels().attendance_list.to_owned(),
            blocks: vec![Block::List { items: self.items(context) }],
        })
    }
}

/// «Фамилия И. О. — должность (дистанционно, с 10:25)».
fn attendee(context: &Context<'_>, member: &Member) -> String {
    let labels = context.words.labels();
    let mut remarks = Vec::new();
    if member.attendance == Attendance::Remote {
        remarks.push(labels.remote.to_owned());
    }
    if !member.voting_right {
        remarks.push(labels.without_vote.to_owned());
    }
    for interval in &member.presence {
        let from = interval.from.as_deref().map(|from| context.words.since(&context.time(from)));
        let to = interval.to.as_deref().map(|to| context.words.until(&context.time(to)));
        remarks.extend(match (from, to) {
            (Some(from), Some(to)) => Some(format!("{from} {to}")),
            (from, to) => from.or(to),
        });
    }
    let position = member.position.as_deref().map(line).map_or_else(String::new, |position| format!("\u{a0}— {position}"));
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    format!("{}{position}{remarks}", line(&member.name))
}

/// A date of the agenda in its own zone, YYYY-MM-DD, for the record.
#[must_use]
pub fn meeting_date(agenda: &Agenda) -> Option<String> {
    Zone::named(agenda.time_zone.as_deref()).wall_clock(&agenda.start).map(|clock| clock.date().to_string())
}

/// A printed number of each question, in the order of printing.
#[must_use]
pub fn printed_numbers(agenda: &Agenda) -> Vec<(&Question, String)> {
    let mut questions: Vec<&Question> = agenda.questions.iter().collect();
    questions.sort_by_key(|question| question.order);
    questions.into_iter().enumerate().map(|(at, question)| (question, section::printed_number(question, at + 1))).collect()
}
