//! `[generator]` and `[documents]`: what is made, and where it is kept.

use super::{Problem, text};
use crate::domain::{agenda::Language, protocol::Format};
use bytesize::ByteSize;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    pub formats: Vec<Format>,
    /// `None`: the agenda's own.
    #[serde(default)]
    pub language: Option<Language>,
    pub max_questions: usize,
    #[serde(deserialize_with = "text::size")]
    pub max_report_size: ByteSize,
    /// How many documents are typeset at once; 0: as many as there are cores.
    pub renderers: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Documents {
    /// A folder; empty: `documents` in `data_dir`.
    #[serde(default)]
    pub store: String,
}

impl Generator {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if self.formats.is_empty() {
            problems.push(Problem::new("generator.formats", "is empty, so nothing would be made; name at least one format"));
        }
        for format in self.formats.iter().filter(|format| !matches!(format, Format::Pdf | Format::Json)) {
            problems.push(Problem::new("generator.formats", format!("{format} cannot be made; choose among pdf and json")));
        }
        if self.formats.iter().enumerate().any(|(at, format)| self.formats[..at].contains(format)) {
            problems.push(Problem::new("generator.formats", "names a format twice; name each once"));
        }
        if self.max_questions == 0 {
            problems.push(Problem::new("generator.max_questions", "is 0, so every agenda would be refused; write at least 1"));
        }
        if self.max_report_size.as_u64() == 0 {
            problems.push(Problem::new("generator.max_report_size", "is 0, so every report would be refused; the default is 64MiB"));
        }
    }
}

impl Documents {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if self.store.contains("://") {
            let reason = format!("{:?} is not a folder; name one, or leave it empty for documents in data_dir", self.store);
            problems.push(Problem::new("documents.store", reason));
        }
    }
}
