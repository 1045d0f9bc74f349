//! The one model of an agenda that everything downstream works on, and at the same time our own JSON format.
//!
//! Texts are paragraphs of plain Unicode; nothing in them is markup. Optional means: a body may not record it, and then the protocol leaves it out.
//! What contradicts itself is found by the rules of the generator's CHECK phase, never here: this module only says what can be written down at all.

use super::task::UnknownWord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A meeting's agenda (повестка) with everything that goes into its protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agenda {
    /// The agenda's id; must be the one asked for.
    pub agenda_id: String,
    /// Changes whenever anything in the agenda changes; without it the hash of the content serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The protocol's registration number, if the body gives its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// What the meeting is called, such as «очередное заседание Совета».
    pub title: String,
    /// Who meets.
    pub body: Body,
    /// The language of the document: ru, en or de.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// The settlement where the meeting takes place, such as «г. Калуга».
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// IANA name of the zone in which times are printed, such as Europe/Moscow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// When the sitting began: RFC 3339 with an offset.
    pub start: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Id of the member who presides. Not known in some foreign formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub chair: Option<String>,
    /// Id of the member, or of an invited person, who keeps the minutes. Not known in some foreign formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub secretary: Option<String>,
    /// Ids of those who count the votes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tellers: Vec<String>,
    /// The body's members, present or not.
    pub members: Vec<Member>,
    /// Those who attend without being members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invited: Vec<Guest>,
    /// Not known in some foreign formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub rules: Option<Rules>,
    pub questions: Vec<Question>,
    /// For bundled samples only: a duration such as "20s" that the source takes, spread over the questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_delay: Option<String>,
}

/// The body that meets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Body {
    /// The organisation, as the head of the document names it.
    pub organization: String,
    /// The body itself in the genitive where the language has one («Совета депутатов»), as it follows "protocol of the meeting of".
    pub name: String,
}

/// The language of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Ru,
    En,
    De,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Ru, Self::En, Self::De];

    /// Its ISO 639-1 code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ru => "ru",
            Self::En => "en",
            Self::De => "de",
        }
    }
}

impl FromStr for Language {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let same = |language: &Self| language.as_str() == text;
        Self::ALL.into_iter().find(same).ok_or_else(|| UnknownWord(text.to_owned(), "language"))
    }
}

/// One member of the body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Member {
    pub id: String,
    /// Surname and initials, as printed.
    pub name: String,
    /// Post or role, as printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    #[serde(default = "yes")]
    pub voting_right: bool,
    pub attendance: Attendance,
    /// Why an absent member is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence_reason: Option<String>,
    /// When a member who came late or left early was there; empty: throughout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presence: Vec<Interval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attendance {
    Present,
    /// Takes part from elsewhere; counts as present.
    Remote,
    Absent,
}

/// A time during which a member was there: RFC 3339 with an offset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Interval {
    /// Absent: from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Absent: until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// An invited person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guest {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}

/// When the body may decide, and by which majority it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules {
    /// How many members must be present, in members with a voting right.
    pub quorum: Share,
    /// The majority that a decision needs unless its question says otherwise.
    pub majority: Majority,
}

/// A share of the voting members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// More than half.
    MoreThanHalf,
    /// At least half.
    Half,
    /// At least two thirds.
    TwoThirds,
    /// At least this many.
    AtLeast(u32),
}

/// What a decision needs to be adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Majority {
    /// More votes for than against.
    Simple,
    /// More than half of those present and entitled to vote.
    OfPresent,
    /// More than half of all voting members.
    Absolute,
    /// Two thirds of those present and entitled to vote.
    TwoThirdsOfPresent,
    /// Two thirds of all voting members.
    TwoThirds,
}

/// One question (вопрос) of the agenda.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Question {
    pub id: String,
    /// The place in the agenda; the printed number never decides it.
    pub order: u32,
    /// The printed number, such as "1" or "2а"; absent: the place among the questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    pub title: String,
    /// The agenda service's status word. Ready are `REPORT_SIGNED` and `PROTECTED`.
    pub status: String,
    #[serde(default = "yes")]
    pub public: bool,
    /// When it was called, RFC 3339 with an offset; needed to know who was there if members came or left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Id of a member or invited person who reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rapporteur: Option<String>,
    /// The signed report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<File>,
    /// What was heard, a paragraph each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<String>,
    /// Who spoke, and what about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discussed: Vec<Speech>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision: Vec<DecisionPoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<Vote>,
    /// What became of the question; needed when nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Members who took no part in this question because of a conflict of interest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recusals: Vec<Recusal>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<File>,
}

/// A file, by reference or inline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Where it is; a relative one is resolved against the agenda's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    /// Or the content itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    pub media_type: String,
    /// The name to print; absent: the end of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The announced size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The announced digest, lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// One contribution to the discussion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Speech {
    /// Id of a member or invited person.
    pub speaker: String,
    #[serde(default)]
    pub text: String,
}

/// One point of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionPoint {
    /// The printed number n.m; absent: counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsible: Option<String>,
    /// A date, YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
}

/// A vote on a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vote {
    pub ballot: Ballot,
    #[serde(rename = "for")]
    pub in_favour: u32,
    pub against: u32,
    #[serde(default)]
    pub abstained: u32,
    /// Entitled and present, but did not vote.
    #[serde(default)]
    pub not_voted: u32,
    /// The majority this question needs, where it is not the body's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub majority: Option<Majority>,
    /// Who voted how, of an open ballot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedVote>,
    /// The papers of a secret ballot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub papers: Option<BallotPapers>,
    /// Dissent that somebody wants on record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ballot {
    Open,
    Secret,
}

/// One member's vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedVote {
    pub member: String,
    pub choice: Choice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Choice {
    For,
    Against,
    Abstained,
    NotVoted,
}

/// What became of the ballot papers: issued = found + not returned, found = for + against + abstained + invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BallotPapers {
    pub issued: u32,
    pub found: u32,
    #[serde(default)]
    pub not_returned: u32,
    #[serde(default)]
    pub invalid: u32,
}

/// A dissenting opinion on record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dissent {
    pub member: String,
    pub text: String,
}

/// What became of a question: a category, and the body's own words for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    pub category: OutcomeCategory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutcomeCategory {
    Adopted,
    Rejected,
    Postponed,
    Withdrawn,
    Noted,
    Elected,
    Other,
}

impl OutcomeCategory {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adopted => "adopted",
            Self::Rejected => "rejected",
            Self::Postponed => "postponed",
            Self::Withdrawn => "withdrawn",
            Self::Noted => "noted",
            Self::Elected => "elected",
            Self::Other => "other",
        }
    }
}

/// A member who takes no part in a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recusal {
    pub member: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Question {
    /// Whether its report is signed, so that it may go into a protocol.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.status.as_str(), "REPORT_SIGNED" | "PROTECTED")
    }
}

fn yes() -> bool {
    true
}
