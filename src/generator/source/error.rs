//! How a source can refuse or fail.

use crate::domain::failure::{Failure, FailureCode};

/// Why an agenda could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("the source has no agenda {0}")]
    NotFound(String),
    /// Its place is not inside the source.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("the agenda is larger than {limit} bytes")]
    TooLarge { limit: u64 },
}

/// Why a file that an agenda refers to could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Neither a usable address nor one that this source may follow; nothing was opened and no connection was made.
    #[error("{0}")]
    Refused(String),
    /// There is nothing at its address.
    #[error("{0}")]
    Missing(String),
    /// Whoever holds it does not answer as it should.
    #[error("{0}")]
    Unavailable(String),
    /// It did not come in the time that a request may take.
    #[error("{0}")]
    TooSlow(String),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let text = error.to_string();
        match error {
            SourceError::NotFound(id) => Self::new(FailureCode::AgendaNotFound, format!("The agenda source knows no agenda {id}.")),
            SourceError::Refused(_) => {
                Self::new(FailureCode::AgendaNotFound, "The agenda source has no agenda that it may open under this id.").with_detail(text)
            }
            SourceError::Unavailable(_) => {
                Self::new(FailureCode::AgendaSourceUnavailable, "The agenda source did not answer as it should.").with_detail(text)
            }
            SourceError::TooLarge { .. } => Self::new(FailureCode::AgendaTooLarge, "The agenda is over a limit.").with_detail(text),
        }
    }
}
