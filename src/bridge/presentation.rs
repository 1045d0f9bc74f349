//! The body of v1's 200: the protocol in JSON, reshaped by the configuration's jq program if there is one.
//!
//! A program that fails on one answer gives no answer at all: the unshaped protocol would be read by the caller as an object of its own class with every
//! field empty. The answer stays owed, so the caller gets it when the program has been corrected.

use crate::{
    base::{
        clock::Clock,
        jq::{Program, RunError, SyntaxError},
    },
    domain::{
        failure::Fault,
        ids::{ProtocolId, TaskId},
        protocol::{Document, Format, Origin, Protocol, Record, RecordedQuestion},
        time::Timestamp,
    },
};
use uuid::Uuid;

/// Writes a protocol as JSON; the same one always as the same bytes.
pub type Shape = fn(Protocol) -> Vec<u8>;

/// How a protocol is presented on v1; cheap to clone.
#[derive(Debug, Clone)]
pub struct Presentation {
    shape: Shape,
    program: Option<Program>,
    clock: Clock,
}

/// Why `legacy.response` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("is no jq program: {0}")]
    Syntax(#[from] SyntaxError),
    #[error("fails on a sample protocol: {0}")]
    Sample(#[from] RunError),
}

impl Presentation {
    /// Compiles the program and tries it on a sample, so that a mistake shows at the start and not in the first caller's answer.
    ///
    /// # Errors
    /// When the program cannot be used.
    pub async fn tried(program: Option<&str>, shape: Shape, clock: Clock) -> Result<Self, Unusable> {
        let program = program.map(Program::compile).transpose()?;
        let presentation = Self { shape, program, clock };
        presentation.body(sample()).await?;
        Ok(presentation)
    }

    /// The body.
    ///
    /// # Errors
    /// When the program gives nothing usable for this protocol.
    pub async fn body(&self, protocol: Protocol) -> Result<Vec<u8>, RunError> {
        let unshaped = (self.shape)(protocol);
        match &self.program {
            Some(program) => program.run(&self.clock, unshaped).await,
            None => Ok(unshaped),
        }
    }
}

/// A protocol with everything that one can have.
fn sample() -> Protocol {
    let question = |order: u32, outcome: &str| RecordedQuestion {
        id: format!("q{order}"),
        order,
        number: order.to_string(),
        title: "О бюджете".to_owned(),
        outcome: outcome.to_owned(),
    };
    let document = |format, pages| Document { format, blob: "sample".to_owned(), sha256: "0".repeat(64), bytes: 48_213, pages };
    Protocol {
        id: ProtocolId(Uuid::from_u128(1)),
        task_id: TaskId(Uuid::from_u128(2)),
        agenda_id: "42".parse().expect("42 is an agenda's id"),
        version: 1,
        number: "17".to_owned(),
        fingerprint: String::new(),
        record: Record {
            date: "2026-11-30".to_owned(),
            title: "Очередное заседание".to_owned(),
            body: "Совет депутатов".to_owned(),
            questions: vec![question(1, "adopted"), question(2, "rejected")],
            warnings: vec![Fault { code: "sample".to_owned(), pointer: "/questions/0/vote".to_owned(), detail: "A sample.".to_owned() }],
            not_applicable: Vec::new(),
            origin: Origin::default(),
        },
        documents: Format::ALL.map(|format| document(format, (format == Format::Pdf).then_some(4))).to_vec(),
        created_at: Timestamp::from_micros(1_796_040_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the signature of a shape")]
    fn shape(protocol: Protocol) -> Vec<u8> {
        serde_json::json!({ "number": protocol.number, "documents": protocol.documents.len() }).to_string().into_bytes()
    }

    #[tokio::test]
    async fn a_program_is_tried_before_it_is_used() {
        let tried = |program: &'static str| Presentation::tried(Some(program), shape, Clock::system());
        let good = tried("{nr: .number}").await.unwrap();
        assert_eq!(good.body(sample()).await.unwrap(), br#"{"nr":"17"}"#);
        assert_eq!(tried(".number |").await.unwrap_err().to_string(), "is no jq program: line 1, column 10: expected term, found the end");
        assert!(matches!(tried(".number.x").await, Err(Unusable::Sample(RunError::Failed(_)))));
        assert!(Presentation::tried(None, shape, Clock::system()).await.is_ok());
    }
}
