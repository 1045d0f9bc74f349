//! A finished protocol as clients see it. The same protocol is the same bytes, whoever asks and however often.

use crate::domain::{
    failure::Fault,
    ids::{AgendaId, ProtocolId, TaskId},
    protocol::{Document, Format, Protocol, RecordedQuestion},
    time::Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A protocol and where its documents are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "protocolId": "0198c0df-0000-7000-8000-000000000001", "taskId": "0198c0de-7a3e-7c11-9d2b-3f5a60718293", "agendaId": "42", "number": "17", "version": 1,
    "date": "2026-11-30", "title": "Заседание Совета депутатов", "body": "Совет депутатов",
    "questions": [{ "id": "q1", "order": 1, "number": "1", "title": "О бюджете", "outcome": "adopted" }], "warnings": [],
    "documents": [{ "format": "pdf", "url": "/protocol/0198c0df-0000-7000-8000-000000000001/document.pdf", "bytes": 48213,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pages": 4 }],
    "createdAt": "2026-11-30T12:00:42Z"
}))]
pub struct ProtocolResponse {
    #[schema(value_type = Uuid)]
    pub protocol_id: ProtocolId,
    /// The task that made it.
    #[schema(value_type = Uuid)]
    pub task_id: TaskId,
    #[schema(value_type = String)]
    pub agenda_id: AgendaId,
    pub number: String,
    /// Counted per agenda from 1; nothing is overwritten.
    pub version: u32,
    /// The meeting's date.
    #[schema(format = Date)]
    pub date: String,
    pub title: String,
    pub body: String,
    pub questions: Vec<QuestionShape>,
    pub warnings: Vec<WarningShape>,
    pub documents: Vec<DocumentShape>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What a question came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuestionShape {
    pub id: String,
    pub order: u32,
    pub number: String,
    pub title: String,
    pub outcome: String,
}

/// Something about the agenda that did not stop its protocol.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningShape {
    pub code: String,
    pub pointer: String,
    pub message: String,
}

/// A document of a protocol.
#[derive(Debug, Serialize, ToSchema)]
pub struct DocumentShape {
    #[schema(value_type = String, example = "pdf")]
    pub format: Format,
    pub url: String,
    pub bytes: u64,
    pub sha256: String,
    #[schema(required)]
    pub pages: Option<u32>,
}

impl ProtocolResponse {
    /// A protocol as JSON: the same one is always the same bytes.
    ///
    /// # Panics
    /// Never: a protocol holds only texts and numbers.
    #[must_use]
    pub fn json_of(protocol: Protocol) -> Vec<u8> {
        serde_json::to_vec(&Self::from(protocol)).expect("a protocol holds only texts and numbers")
    }
}

impl From<Protocol> for ProtocolResponse {
    fn from(protocol: Protocol) -> Self {
        let id = protocol.id;
        Self {
            protocol_id: id,
            task_id: protocol.task_id,
            agenda_id: protocol.agenda_id,
            number: protocol.number,
            version: protocol.version,
            date: protocol.record.date,
            title: protocol.record.title,
            body: protocol.record.body,
            questions: protocol.record.questions.into_iter().map(QuestionShape::from).collect(),
            warnings: protocol.record.warnings.into_iter().map(WarningShape::from).collect(),
            documents: protocol.documents.into_iter().map(|document| DocumentShape::of(id, document)).collect(),
            created_at: protocol.created_at,
        }
    }
}

impl From<RecordedQuestion> for QuestionShape {
    fn from(question: RecordedQuestion) -> Self {
        let RecordedQuestion { id, order, number, title, outcome } = question;
        Self { id, order, number, title, outcome }
    }
}

impl From<Fault> for WarningShape {
    fn from(fault: Fault) -> Self {
        Self { code: fault.code, pointer: fault.pointer, message: fault.detail }
    }
}

impl DocumentShape {
    fn of(id: ProtocolId, document: Document) -> Self {
        let Document { format, bytes, sha256, pages, .. } = document;
        Self { format, url: format!("/protocol/{id}/document.{format}"), bytes, sha256, pages }
    }
}
