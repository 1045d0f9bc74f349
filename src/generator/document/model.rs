//! The document model: everything that is printed, in the order in which it is printed, already worded.
//!
//! Every format is made from this one value and adds no words of its own, so that PDF, DOCX and HTML say the same. It is also the `document.json`
//! of a protocol and crosses the renderer's seam as a file; it holds no file contents, only their names, sizes and digests.
//! Texts are plain Unicode; white space in them is printed as it is, non-breaking spaces are already in place.

use crate::domain::agenda::Language;
use serde::{Deserialize, Serialize};

/// Changes whenever the same agenda would print differently: part of the keys under which documents are remembered.
pub const TEMPLATE_VERSION: &str = "2";

/// A protocol, ready to be typeset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DocumentModel {
    /// [`TEMPLATE_VERSION`] at the time of building.
    pub template_version: String,
    pub language: Language,
    /// Names the document through all its versions; the PDF's identifier is a hash of it.
    pub identity: String,
    /// The title in the file's properties.
    pub title: String,
    pub author: String,
    /// When the meeting began: RFC 3339 in UTC. The files carry this time, so that the same protocol is always the same bytes.
    pub timestamp: String,
    pub head: Head,
    /// Between the head and the agenda: who presided, who was there, quorum.
    pub opening: Vec<Block>,
    /// Heading of the agenda, which serves as the table of contents.
    pub contents: String,
    pub sections: Vec<Section>,
    /// After the last question, never apart from the signatures.
    pub closing: Vec<Block>,
    pub signatures: Vec<Signature>,
    pub annexes: Vec<AnnexPage>,
    /// The files that travel inside the document.
    pub attachments: Vec<Attachment>,
}

/// The requisites at the top of the first page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Head {
    pub organization: String,
    /// The kind of document: ПРОТОКОЛ.
    pub kind: String,
    /// What of: «заседания Совета депутатов».
    pub subject: String,
    /// What the meeting itself is called.
    pub meeting: String,
    /// Of the meeting, not of the typing.
    pub date: String,
    pub number: String,
    pub place: String,
}

/// One question of the agenda.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Section {
    /// The question's id in the agenda.
    pub id: String,
    /// Its label inside the typesetter, see [`section_label`]: from our own alphabet, whatever the id is.
    pub label: String,
    /// As printed, without a full stop.
    pub number: String,
    pub title: String,
    /// Printed below the title in the agenda: «Докладчик: …».
    pub rapporteur: Option<String>,
    pub blocks: Vec<Block>,
}

/// The label of the question at a place, counted from 1.
#[must_use]
pub fn section_label(place: usize) -> String {
    format!("q-{place:04}")
}

/// One piece of the running text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub enum Block {
    /// A heading inside a question: СЛУШАЛИ.
    Caption {
        text: String,
    },
    Paragraph {
        text: String,
    },
    /// A label that stands out, and what it says.
    Field {
        label: String,
        text: String,
    },
    /// A numbered point; `details` are lines of its own below it.
    Point {
        number: String,
        text: String,
        details: Vec<String>,
    },
    /// A remark on the course of the meeting.
    Note {
        text: String,
    },
    /// Numbered from 1.
    List {
        items: Vec<String>,
    },
    Table(Table),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Table {
    /// The caption above it.
    pub caption: Option<String>,
    pub columns: Vec<Column>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Column {
    pub title: String,
    pub width: Width,
}

/// How wide a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Width {
    /// A number of a few digits.
    Narrow,
    /// A word or two.
    Medium,
    /// What is left.
    Wide,
    /// A digest: small letters of equal width, broken anywhere.
    Digest,
}

impl Width {
    /// The class of its cells.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::Medium => "medium",
            Self::Wide => "wide",
            Self::Digest => "digest",
        }
    }
}

/// A table of at most so many rows is not torn between pages; the PDF's template knows the same number.
pub const SHORT_TABLE: usize = 8;

/// A line to sign on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signature {
    pub role: String,
    /// Initials first, where the language does so.
    pub name: String,
}

/// An annex that is printed, on a page of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnexPage {
    /// «Приложение № 1»; absent for the list of attached files.
    pub number: Option<String>,
    pub title: String,
    pub blocks: Vec<Block>,
}

/// A file that travels inside the document as its original bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attachment {
    /// Where the renderer finds it: a file in its input folder.
    pub path: String,
    /// Its name inside the document; no two are the same.
    pub name: String,
    pub media_type: String,
    pub description: String,
    pub role: Role,
    pub bytes: u64,
    pub sha256: String,
}

/// What a file is to the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// A question's signed report.
    Report,
    /// Another file of a question.
    Attachment,
    /// The canonical snapshot of the agenda that the protocol was made from.
    Snapshot,
}

/// A file to attach, as the generator hands it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annex {
    /// The question's id; none for the snapshot.
    pub question: Option<String>,
    pub role: Role,
    /// As it was named by its source.
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// The file's path in the renderer's input folder.
    pub path: String,
}
