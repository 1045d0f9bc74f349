//! The failure catalogue: every way in which a task can fail, with its HTTP status, whether it is tried again, and the words for people.
//!
//! Codes are stored with the task and are the last part of a problem's `type`; they never change their meaning.

use super::task::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often a failure may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Retryable {
    No,
    /// Once, whatever the task's maximum.
    Once,
    Yes,
}

/// Why a task failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureCode {
    AgendaNotFound,
    AgendaNotReady,
    AgendaInvalid,
    AgendaKeepsChanging,
    AgendaTooLarge,
    AgendaSourceUnavailable,
    ReportUnavailable,
    RenderFailed,
    RenderLimit,
    StorageUnavailable,
    DeadlineExceeded,
    WorkerLost,
    Cancelled,
    Internal,
}

/// What the catalogue says of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub code: &'static str,
    pub http_status: u16,
    pub retryable: Retryable,
    pub title: &'static str,
    pub what_to_do: &'static str,
}

impl FailureCode {
    pub const ALL: [Self; 14] = [
        Self::AgendaNotFound,
        Self::AgendaNotReady,
        Self::AgendaInvalid,
        Self::AgendaKeepsChanging,
        Self::AgendaTooLarge,
        Self::AgendaSourceUnavailable,
        Self::ReportUnavailable,
        Self::RenderFailed,
        Self::RenderLimit,
        Self::StorageUnavailable,
        Self::DeadlineExceeded,
        Self::WorkerLost,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The catalogue itself (`http.md`, "Failures"): only statuses that Feign types and no client repeats by itself.
    #[must_use]
    pub const fn entry(self) -> Entry {
        use Retryable::{No, Once, Yes};
        let (code, http_status, retryable, title, what_to_do) = match self {
            Self::AgendaNotFound => {
                ("agenda-not-found", 404, No, "No such agenda", "Check the agenda id; the agenda source knows none of this name.")
            }
            Self::AgendaNotReady => (
                "agenda-not-ready",
                409,
                No,
                "The agenda is not ready",
                "Sign the reports of the questions named in errors, then ask again.",
            ),
            Self::AgendaInvalid => {
                ("agenda-invalid", 422, No, "The agenda contradicts itself", "Correct what errors names, then ask again.")
            }
            Self::AgendaKeepsChanging => {
                ("agenda-keeps-changing", 409, Yes, "The agenda keeps changing", "Ask again when nobody edits the agenda any more.")
            }
            Self::AgendaTooLarge => {
                ("agenda-too-large", 422, No, "The agenda is over a limit", "Split the agenda, or raise the limit named in detail.")
            }
            Self::AgendaSourceUnavailable => {
                ("agenda-source-unavailable", 502, Yes, "The agenda source does not answer", "Look at the agenda service; then ask again.")
            }
            Self::ReportUnavailable => (
                "report-unavailable",
                502,
                Yes,
                "A report could not be fetched",
                "Look at the service that holds the report named in detail; then ask again.",
            ),
            Self::RenderFailed => {
                ("render-failed", 500, No, "The document does not typeset", "Tell the operator; the log names the cause under the same id.")
            }
            Self::RenderLimit => (
                "render-limit",
                500,
                Once,
                "The document took too much time or memory",
                "Tell the operator; the document may be too large for the renderer's limits.",
            ),
            Self::StorageUnavailable => {
                ("storage-unavailable", 500, Yes, "Documents could not be stored", "Look at the document store; then ask again.")
            }
            Self::DeadlineExceeded => (
                "deadline-exceeded",
                500,
                Yes,
                "The attempt took too long",
                "Ask again; if it happens again, raise engine.attempt_deadline.",
            ),
            Self::WorkerLost => {
                ("worker-lost", 500, Yes, "The worker was lost", "Look for a crashed or overloaded node; then replay the task.")
            }
            Self::Cancelled => ("cancelled", 409, No, "The task was cancelled", "Submit a new task if the protocol is still wanted."),
            Self::Internal => {
                ("internal", 500, Yes, "Something went wrong inside", "Tell the operator; the log names the cause under the same id.")
            }
        };
        Entry { code, http_status, retryable, title, what_to_do }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().code
    }

    /// Whether dead letters of this reason are ordinary: they are answers about an agenda, retained 90 days and left out of the alert.
    #[must_use]
    pub fn is_about_the_agenda(self) -> bool {
        self.as_str().starts_with("agenda-")
    }
}

/// One thing that is wrong, with where: the secretary's words in `detail`, the place in `pointer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// The rule that found it, such as `votes-do-not-add-up`.
    pub code: String,
    /// JSON Pointer (RFC 6901) into the agenda.
    pub pointer: String,
    pub detail: String,
}

/// Why an attempt or a task failed, as stored and as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    pub code: FailureCode,
    /// One sentence for a person.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub retryable: Retryable,
    pub phase: Option<Phase>,
    /// Everything that is wrong at once, where the code has such a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
}

impl Failure {
    /// A failure with the catalogue's own answer to "retry?". Texts are cleaned: see [`clean`].
    #[must_use]
    pub fn new(code: FailureCode, message: impl AsRef<str>) -> Self {
        Self { code, message: clean(message.as_ref()), detail: None, retryable: code.entry().retryable, phase: None, errors: Vec::new() }
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        self.detail = Some(clean(detail.as_ref()));
        self
    }

    #[must_use]
    pub fn in_phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    #[must_use]
    pub fn with_errors(mut self, errors: Vec<Fault>) -> Self {
        self.errors = errors
            .into_iter()
            .map(|fault| Fault { code: fault.code, pointer: clean(&fault.pointer), detail: clean(&fault.detail) })
            .collect();
        self
    }
}

/// The longest message or detail that is stored.
const MAX_TEXT_BYTES: usize = 4096;

/// Makes a text from elsewhere storable everywhere: NUL (which PostgreSQL refuses) becomes U+FFFD and the length is bounded. Without it a finished task whose
/// error text holds a NUL could never be written and would run for ever.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut cleaned = text.replace('\0', "\u{FFFD}");
    if cleaned.len() > MAX_TEXT_BYTES {
        cleaned.truncate(cleaned.floor_char_boundary(MAX_TEXT_BYTES));
        cleaned.push('…');
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_stored_as_the_catalogue_names_them() {
        for code in FailureCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn no_failure_uses_a_status_that_clients_repeat_by_themselves() {
        for code in FailureCode::ALL {
            assert!([400, 401, 403, 404, 409, 410, 415, 422, 500, 502].contains(&code.entry().http_status), "{}", code.as_str());
        }
    }

    #[test]
    fn texts_are_storable() {
        assert_eq!(clean("a\0b"), "a\u{FFFD}b");
        assert!(clean(&"ж".repeat(10_000)).len() <= MAX_TEXT_BYTES + 3);
    }
}
