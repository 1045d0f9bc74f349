//! The rules of the CHECK phase, one file a family. Each has a code, a severity, and the secretary's words in three languages; all are run, whatever the others
//! find. A new rule is a function and a line in [`table::RULES`].

pub mod attendance;
pub mod ballots;
pub mod decisions;
pub mod dissent;
pub mod files;
pub mod identity;
pub mod persons;
pub mod quorum;
pub mod rule;
pub mod sitting;
pub mod table;
pub mod times;
pub mod votes;

pub use rule::{Findings, Rule, Severity, Subject, Weight};
pub use sitting::{Case, Sitting};
pub use table::{RULES, not_applicable};
