//! How a failure is told on the command line, and the exit code that it leads to.

use super::{Exit, output::note};
use crate::domain::failure::{Failure, FailureCode};

/// Everything that is wrong, one line each, and what to do.
pub(super) fn explain(failure: &Failure) {
    note(&failure.message);
    if let Some(detail) = &failure.detail {
        note(detail);
    }
    for fault in &failure.errors {
        note(&format!("  {} ({})", fault.detail, fault.pointer));
    }
    // Whoever stopped it knows what to do.
    if failure.code != FailureCode::Cancelled {
        note(failure.code.entry().what_to_do);
    }
}

pub(super) fn exit_of(code: FailureCode) -> Exit {
    match code {
        FailureCode::AgendaNotFound | FailureCode::AgendaNotReady | FailureCode::AgendaInvalid | FailureCode::AgendaTooLarge => {
            Exit::AgendaRefused
        }
        _ => Exit::Failed,
    }
}
