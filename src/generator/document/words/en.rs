//! English minutes.

use super::{Labels, Present, Quorum, Words, grouped, listed};
use crate::{
    domain::agenda::{Ballot, OutcomeCategory, Share, Vote},
    generator::document::model::Role,
};
use jiff::civil::{Date, Time};
use std::fmt::Write as _;

pub(super) struct English;

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

static LABELS: Labels = Labels {
    kind: "MINUTES",
    opened: "Time",
    chair: "Chair",
    secretary: "Secretary",
    tellers: "Tellers",
    absent: "Absent",
    invited: "In attendance",
    quorum: "Quorum",
    agenda: "AGENDA",
    rapporteur: "Rapporteur",
    heard: "REPORT",
    discussed: "DISCUSSION",
    decided: "RESOLVED",
    voted: "Votes",
    secret_ballot: "Secret ballot",
    named_votes: "Recorded vote",
    choice: "Vote",
    count: "Number",
    members: "Members",
    in_favour: "For",
    against: "Against",
    abstained: "Abstained",
    not_voted: "Did not vote",
    outcome: "Outcome",
    dissent: "Dissent on record",
    annexes: "Annexes",
    attendance_list: "List of those present",
    file_list: "List of attached files",
    annex_number: "No.",
    question: "Item",
    file: "File",
    size: "Size",
    remote: "remotely",
    without_vote: "without a vote",
    closed_session: "This item was taken in closed session.",
    no_reason: "no reason given",
};

impl Words for English {
    fn labels(&self) -> &'static Labels {
        &LABELS
    }

    fn subject(&self, body: &str) -> String {
        format!("of the meeting of {body}")
    }

    fn number(&self, number: &str) -> String {
        format!("No.\u{a0}{number}")
    }

    fn title(&self, number: &str, body: &str, date: &str) -> String {
        format!("Minutes No. {number} of the meeting of {body}, {date}")
    }

    fn date(&self, date: Date) -> String {
        let month = usize::from(date.month().unsigned_abs()) - 1;
        format!("{}\u{a0}{}\u{a0}{}", date.day(), MONTHS[month], date.year())
    }

    fn time(&self, time: Time) -> String {
        format!("{:02}:{:02}", time.hour(), time.minute())
    }

    fn sitting(&self, start: &str, end: Option<&str>) -> String {
        end.map_or_else(|| format!("opened at {start}"), |end| format!("opened at {start}, closed at {end}"))
    }

    fn attended_label(&self, _: usize) -> &'static str {
        "Present:"
    }

    fn attended(&self, Present { now, total }: Present) -> String {
        format!("{now} of {total} {}", if total == 1 { "member" } else { "members" })
    }

    fn list_in_annex(&self, annex: usize) -> String {
        format!("listed in Annex\u{a0}{annex}")
    }

    fn since(&self, time: &str) -> String {
        format!("from {time}")
    }

    fn until(&self, time: &str) -> String {
        format!("until {time}")
    }

    fn quorum(&self, quorum: Quorum) -> String {
        let Quorum { entitled, present, share, needed } = quorum;
        let share = match share {
            Share::MoreThanHalf => "more than half is required, that is at least ",
            Share::Half => "half is required, that is at least ",
            Share::TwoThirds => "two thirds are required, that is at least ",
            Share::AtLeast(_) => "required are at least ",
        };
        let verdict = if quorum.is_reached() { "A quorum is present." } else { "There is no quorum." };
        format!("{present} of {entitled} voting members present at the opening; {share}{needed}. {verdict}")
    }

    fn arrives(&self, time: &str, names: &[String], Present { now, total }: Present) -> String {
        format!("At {time} {} joined the meeting. Present: {now} of {total} members.", listed(names, "and"))
    }

    fn leaves(&self, time: &str, names: &[String], Present { now, total }: Present) -> String {
        format!("At {time} {} left the meeting. Present: {now} of {total} members.", listed(names, "and"))
    }

    fn recused(&self, name: &str, reason: Option<&str>) -> String {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("{name} took no part in the discussion and the vote{reason}.")
    }

    fn due(&self, date: &str) -> String {
        format!("Due: {date}")
    }

    fn responsible(&self, who: &str) -> String {
        format!("Responsible: {who}")
    }

    fn voted(&self, vote: &Vote) -> String {
        let mut text = format!("for\u{a0}– {}, against\u{a0}– {}", vote.in_favour, vote.against);
        if vote.ballot == Ballot::Open || vote.abstained > 0 {
            let _ = write!(text, ", abstained\u{a0}– {}", vote.abstained);
        }
        if vote.not_voted > 0 {
            let _ = write!(text, ", did not vote\u{a0}– {}", vote.not_voted);
        }
        text + "."
    }

    fn papers(&self, vote: &Vote) -> Option<String> {
        let papers = vote.papers.as_ref()?;
        Some(format!(
            "papers issued\u{a0}– {}, found in the box\u{a0}– {}, not returned\u{a0}– {}, invalid\u{a0}– {}.",
            papers.issued, papers.found, papers.not_returned, papers.invalid
        ))
    }

    fn outcome(&self, category: OutcomeCategory) -> &'static str {
        match category {
            OutcomeCategory::Adopted => "adopted",
            OutcomeCategory::Rejected => "rejected",
            OutcomeCategory::Postponed => "postponed",
            OutcomeCategory::Withdrawn => "withdrawn from the agenda",
            OutcomeCategory::Noted => "noted",
            OutcomeCategory::Elected => "elected",
            OutcomeCategory::Other => "dealt with",
        }
    }

    fn adopted(&self, unanimously: bool) -> &'static str {
        if unanimously { "adopted unanimously" } else { "adopted by a majority of votes" }
    }

    fn annex(&self, number: usize) -> String {
        format!("Annex\u{a0}{number}")
    }

    fn report_attached(&self, annex: usize) -> String {
        format!("The report is attached (Annex\u{a0}{annex}).")
    }

    fn files_attached(&self, files: &[(usize, String)]) -> String {
        let files: Vec<String> = files.iter().map(|(annex, name)| format!("{name} (Annex\u{a0}{annex})")).collect();
        format!("Attached to this item: {}.", files.join("; "))
    }

    fn files_enclosed(&self, first: usize, last: usize) -> String {
        if first == last {
            format!("No.\u{a0}{first}: an electronic file, listed with its checksum at the end of the document")
        } else {
            format!("Nos.\u{a0}{first}–{last}: electronic files, listed with their checksums at the end of the document")
        }
    }

    fn files_explained(&self) -> &'static str {
        "The files are enclosed electronically; the PDF of these minutes carries them, unchanged. The checksums are SHA-256."
    }

    fn file_role(&self, role: Role) -> &'static str {
        match role {
            Role::Report => "report",
            Role::Attachment => "paper",
            Role::Snapshot => "source data of these minutes",
        }
    }

    fn bytes(&self, bytes: u64) -> String {
        format!("{}\u{a0}{}", grouped(bytes, ','), if bytes == 1 { "byte" } else { "bytes" })
    }

    fn closed(&self, time: Option<&str>) -> String {
        time.map_or_else(
            || "There being no further business, the meeting closed.".to_owned(),
            |time| format!("There being no further business, the meeting closed at {time}."),
        )
    }

    fn signs_initials_first(&self) -> bool {
        false
    }
}
