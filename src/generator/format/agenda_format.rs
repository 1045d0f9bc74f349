//! The formats in which an agenda may come, and what each of them can carry.
//!
//! A rule whose input a format cannot carry is not applicable there: that OParl counts no votes is no fault of an agenda that comes as OParl.

/// A format, as it was named or detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AgendaFormat {
    /// Our own JSON.
    #[default]
    Native,
    /// Any JSON that a jq program turns into ours.
    Mapped,
    OParl,
    Legistar,
}

/// What rules look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Datum {
    /// Who presided, who kept the minutes, who counted.
    Officers,
    /// Who of the members was there.
    Attendance,
    /// When those were there who came late or left early.
    Presence,
    /// How many must be there to decide.
    Quorum,
    /// The majority that a decision needs.
    Majority,
    /// Who may not vote although a member.
    VotingRights,
    /// How many voted how.
    Counts,
    /// Who voted how.
    NamedVotes,
    /// Whether a ballot was secret, and what became of its papers.
    Papers,
    /// Who wants a dissent on record.
    Dissent,
    Recusals,
    /// Who reported and who spoke.
    Speakers,
    /// Whether a report is signed, and its file.
    Reports,
    /// SHA-256 of files.
    Digests,
    /// Numbered points of a decision, with due dates.
    DecisionPoints,
    /// The time at which a question was called.
    QuestionTimes,
    /// How far the clocks are from UTC.
    Offsets,
    /// Printed numbers that are meant to be unique.
    UniqueNumbers,
}

impl AgendaFormat {
    pub const ALL: [Self; 4] = [Self::Native, Self::Mapped, Self::OParl, Self::Legistar];

    /// As it stands in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Mapped => "mapped",
            Self::OParl => "oparl",
            Self::Legistar => "legistar",
        }
    }

    /// Whether an agenda in this format can say it at all.
    #[must_use]
    pub const fn carries(self, datum: Datum) -> bool {
        match self {
            Self::Native | Self::Mapped => true,
            // OParl 1.1, `AgendaItem`: start and end, a result and its text; no votes, no roll, and numbers of any kind ("c)", or none).
            Self::OParl => matches!(datum, Datum::QuestionTimes | Datum::Offsets),
            // Legistar: `RollCall` and `Vote` by person; no majority rule, no quorum, and a "Conflict" or "Recused" where somebody stood aside.
            Self::Legistar => matches!(datum, Datum::Attendance | Datum::Counts | Datum::NamedVotes | Datum::Recusals),
        }
    }
}
