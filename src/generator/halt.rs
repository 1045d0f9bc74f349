//! What ends the generator's work early.

use super::documents::StoreError;
use crate::{
    base::chain::chain,
    domain::{
        failure::{Failure, FailureCode},
        task::Phase,
    },
    engine::executor::Stop,
    store,
};

/// Why a phase did not finish.
#[derive(Debug)]
pub enum Halt {
    /// The attempt is over: the lease is gone, the task was cancelled, or the process ends.
    Stopped,
    Failed(Box<Failure>),
}

impl Halt {
    /// Says in which phase a failure happened, unless it says so already.
    #[must_use]
    pub fn in_phase(self, phase: Phase) -> Self {
        match self {
            Self::Failed(failure) if failure.phase.is_none() => failure.in_phase(phase).into(),
            other => other,
        }
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<Stop> for Halt {
    fn from(_: Stop) -> Self {
        Self::Stopped
    }
}

impl From<store::Error> for Halt {
    fn from(error: store::Error) -> Self {
        tracing::error!(error = chain(&error), "the generator could not read or write the database");
        Failure::new(FailureCode::Internal, "The database could not be read or written.").into()
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = chain(&error), "the document store failed");
        Failure::new(FailureCode::StorageUnavailable, "The document store could not be read or written.").into()
    }
}

impl From<std::io::Error> for Halt {
    fn from(error: std::io::Error) -> Self {
        tracing::error!(error = chain(&error), "temporary files could not be read or written");
        Failure::new(FailureCode::StorageUnavailable, "Temporary files could not be read or written.").into()
    }
}
