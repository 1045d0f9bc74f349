//! The phases one after the other, for whoever runs them: a task's attempt, a check, or the command line.

use super::{
    Halt, Journal, Meter,
    check::{self, Checked},
    collect::{Collected, Collector},
    documents::DocumentStore,
    files::FileRoom,
    settings::Settings,
    source::{Source, upstream::Upstream},
};
use crate::{
    base::{
        clock::Clock,
        metrics,
        spans::{Span, SpanKind},
    },
    domain::{
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        task::Phase,
    },
};
use std::{fmt, future::Future};

/// What the phases work with; cheap to clone.
#[derive(Clone)]
pub struct Work {
    pub source: Source,
    pub outside: Upstream,
    pub store: DocumentStore,
    pub clock: Clock,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("source", &self.source).finish_non_exhaustive()
    }
}

/// No failure and no record lists more: they are stored with the task, and nobody reads on.
pub const MAX_FAULTS: usize = 500;

/// An agenda after COLLECT and CHECK.
#[derive(Debug)]
pub struct Examined {
    /// With every text made printable.
    pub collected: Collected,
    /// Everything for which there can be no protocol; questions that are not ready are in `collected`.
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

impl Work {
    /// COLLECT and CHECK.
    ///
    /// # Errors
    /// When the agenda cannot be had or read at all; what is wrong in it is in [`Examined`].
    pub async fn examine(
        &self,
        id: &AgendaId,
        id_is_asked: bool,
        settings: &Settings,
        journal: &Journal<'_>,
        meter: &Meter,
    ) -> Result<Examined, Halt> {
        let room = FileRoom { source: &self.source, outside: &self.outside, store: &self.store, settings };
        let collector = Collector { id, id_is_asked, room, clock: &self.clock, journal, meter };
        let mut collected = self.timed(Phase::Collect, Box::pin(collector.collect())).await?;
        let agenda = collected.agenda.clone();
        let check = Box::pin(check::check(agenda, collected.format, &collected.places, collected.language, journal, meter));
        let Checked { agenda, errors, warnings } = self.timed(Phase::Check, check).await?;
        collected.agenda = agenda;
        let errors = without_waiting(errors, &collected.not_ready);
        let errors = std::mem::take(&mut collected.errors).into_iter().chain(errors).collect();
        let warnings = std::mem::take(&mut collected.warnings).into_iter().chain(warnings).take(MAX_FAULTS).collect();
        Ok(Examined { collected, errors, warnings })
    }

    /// Runs a phase: measures it, and names it in its failure.
    pub async fn timed<T>(&self, phase: Phase, work: impl Future<Output = Result<T, Halt>>) -> Result<T, Halt> {
        let start = self.clock.monotonic();
        let span = Span::child(phase.as_str().to_owned(), SpanKind::Internal);
        let result = span.around(work).await;
        if let Err(Halt::Failed(failure)) = &result {
            span.fail(failure.code.as_str());
        }
        metrics::GENERATOR_PHASE.record(&[phase.as_str()], self.clock.monotonic().since(start));
        result.map_err(|halt| halt.in_phase(phase))
    }
}

/// Leaves out what was found in questions that are not ready: one whose report is not signed has no decision yet, which is no fault of its own.
#[must_use]
pub fn without_waiting(errors: Vec<Fault>, not_ready: &[Fault]) -> Vec<Fault> {
    let waiting: Vec<String> = not_ready.iter().filter_map(|fault| Some(format!("{}/", fault.pointer.strip_suffix("/status")?))).collect();
    errors.into_iter().filter(|fault| !waiting.iter().any(|prefix| fault.pointer.starts_with(prefix))).collect()
}

impl Examined {
    /// The failure for which there is no protocol, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        if !self.errors.is_empty() {
            let mut errors = [self.errors.clone(), self.collected.not_ready.clone()].concat();
            let message = match errors.len() {
                1 => "The agenda has a fault.".to_owned(),
                faults if faults > MAX_FAULTS => format!("The agenda has {faults} faults; the first {MAX_FAULTS} are listed."),
                faults => format!("The agenda has {faults} faults."),
            };
            errors.truncate(MAX_FAULTS);
            return Some(Failure::new(FailureCode::AgendaInvalid, message).with_errors(errors).in_phase(Phase::Check));
        }
        if !self.collected.not_ready.is_empty() {
            let questions = self.collected.not_ready.len();
            let listed = self.collected.not_ready.iter().take(MAX_FAULTS).cloned().collect();
            let message =
                if questions == 1 { "A question is not ready.".to_owned() } else { format!("{questions} questions are not ready.") };
            let failure = Failure::new(FailureCode::AgendaNotReady, message);
            return Some(failure.with_errors(listed).in_phase(Phase::Collect));
        }
        None
    }
}
