//! The finished protocol: a structured record, and the documents made from it.

use super::{
    failure::Fault,
    ids::{AgendaId, ProtocolId, TaskId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A document's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Pdf,
    Docx,
    Html,
    Json,
}

impl Format {
    pub const ALL: [Self; 4] = [Self::Pdf, Self::Docx, Self::Html, Self::Json];

    /// Also the file extension.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Html => "html",
            Self::Json => "json",
        }
    }

    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = super::task::UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| super::task::UnknownWord(text.to_owned(), "document format"))
    }
}

/// One document of a protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub format: Format,
    /// Its key in the document store.
    pub blob: String,
    /// Lower-case hex.
    pub sha256: String,
    pub bytes: u64,
    pub pages: Option<u32>,
}

/// What a question came to, as the record lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedQuestion {
    pub id: String,
    pub order: u32,
    pub number: String,
    pub title: String,
    /// [`super::agenda::OutcomeCategory`] as text.
    pub outcome: String,
}

/// The structured record: what is stored as JSON beside the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The meeting's date in its own zone, YYYY-MM-DD.
    pub date: String,
    pub title: String,
    pub body: String,
    pub questions: Vec<RecordedQuestion>,
    pub warnings: Vec<Fault>,
    /// Codes of the rules that the agenda's format gives nothing to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applicable: Vec<String>,
    /// What the agenda was when it was read, to tell later whether it has changed.
    #[serde(default)]
    pub origin: Origin,
}

/// An agenda's state as its source told it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The source's own word for it (an ETag), if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Hash of what the documents depend on; question statuses, which change when a protocol is done, are not in it.
    #[serde(default)]
    pub digest: String,
}

/// A protocol as stored: one version under an agenda's number.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    pub id: ProtocolId,
    pub task_id: TaskId,
    pub agenda_id: AgendaId,
    /// Counted per agenda from 1; nothing is overwritten.
    pub version: u32,
    pub number: String,
    /// Hash of everything that the documents depend on: the same fingerprint is the same protocol.
    pub fingerprint: String,
    pub record: Record,
    pub documents: Vec<Document>,
    pub created_at: Timestamp,
}

/// A protocol that is about to be published; its version is given in the transaction that stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProtocol {
    pub id: ProtocolId,
    pub agenda_id: AgendaId,
    pub number: String,
    pub fingerprint: String,
    pub record: Record,
    pub documents: Vec<Document>,
}
