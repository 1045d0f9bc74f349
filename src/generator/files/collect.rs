//! All files of an agenda: those that are known, and those that are fetched, many at once.

use super::{
    FileRoom,
    fetch::{Outcome, Unavailable, fetch},
    wanted::{Slot, Wanted, wanted},
};
use crate::{
    domain::{
        agenda::{Agenda, Language},
        failure::{Failure, FailureCode, Fault},
        task::Phase,
    },
    engine::executor::Step,
    generator::{Halt, Journal, Meter, documents::Stored, source::Address},
};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A file of the agenda that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedFile {
    /// Index of its question in the model.
    pub question: usize,
    pub slot: Slot,
    pub name: String,
    pub media_type: String,
    pub stored: Stored,
}

/// What came of all files.
#[derive(Debug, Default)]
pub struct CollectedFiles {
    pub files: Vec<CollectedFile>,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
    /// How many were asked of another service.
    pub requests: usize,
}

/// A step's output.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Output {
    blob: String,
    sha256: String,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The round of a task in which it was last looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    round: String,
}

/// After so many files whose holders are down or slow the rest is not tried: each would take its time-outs.
const MAX_DOWN: usize = 3;

/// Brings all files into the store, those that are not there yet. `round` names this task and the state of the agenda that it works on: what was looked at in it
/// is not asked about again.
///
/// # Errors
/// `report-unavailable`, `agenda-too-large`, `storage-unavailable`, each naming all files that it is about. What is wrong with the agenda itself is in
/// [`CollectedFiles`].
#[expect(clippy::too_many_arguments, reason = "what is collected, where from, how it is told, and who keeps count")]
pub async fn collect(
    agenda: &Agenda,
    places: &[usize],
    address: &Address,
    round: &str,
    room: FileRoom<'_>,
    language: Language,
    journal: &Journal<'_>,
    meter: &Meter,
) -> Result<CollectedFiles, Halt> {
    let wanted = wanted(agenda, places, &room.source.name(), address);
    let known = journal.known(wanted.iter().map(|wanted| wanted.key.clone()).collect()).await?;
    let mut collected = CollectedFiles::default();
    let mut missing = Vec::new();
    let mut there = 0;
    for wanted in wanted {
        let output = known.get(&wanted.key).and_then(|output| serde_json::from_str::<Output>(output).ok());
        match output {
            Some(output) if wanted.may_change() && output.etag.is_some() && output.round != round => missing.push((wanted, Some(output))),
            Some(output) => {
                there += 1;
                collected.files.push(finished(wanted, output.stored()));
            }
            None => missing.push((wanted, None)),
        }
    }
    journal.progress(Phase::Collect, meter.add(there)).await?;

    let fetches = stream::iter(missing).map(|(wanted, before)| async move {
        let etag = before.as_ref().and_then(|output| output.etag.as_deref());
        let outcome = fetch(&wanted, etag, address, room, language).await;
        (wanted, before, outcome)
    });
    let (mut unavailable, mut too_large, mut down) = (Vec::new(), Vec::new(), 0);
    // Those that are finished together are noted together: one transaction for many small files.
    let mut finished_together = fetches.buffer_unordered(room.settings.concurrency).ready_chunks(32);
    while let Some(batch) = finished_together.next().await {
        let mut steps = Vec::new();
        let done = batch.len();
        for (wanted, before, outcome) in batch {
            collected.requests += usize::from(wanted.file.base64.is_none());
            let output = match (outcome?, before) {
                (Outcome::Stored(stored, etag), _) => Output::of(stored, etag, round),
                (Outcome::Unchanged, Some(before)) => Output { round: round.to_owned(), ..before },
                // Nobody was asked about a state that is not known.
                (Outcome::Unchanged, None) => continue,
                (Outcome::Wrong(fault), _) => {
                    collected.errors.push(fault);
                    continue;
                }
                (Outcome::TooLarge(fault), _) => {
                    too_large.push(fault);
                    continue;
                }
                (Outcome::LeftOut(fault), _) => {
                    collected.warnings.push(fault);
                    continue;
                }
                (Outcome::Unavailable(Unavailable { fault, is_down }), _) => {
                    down += usize::from(is_down);
                    unavailable.push(fault);
                    continue;
                }
            };
            steps.push(Step { name: wanted.step.clone(), key: wanted.key.clone(), output: json!(output).to_string() });
            collected.files.push(finished(wanted, output.stored()));
        }
        journal.done(Phase::Collect, meter.add(done), steps).await?;
        if down >= MAX_DOWN {
            break;
        }
    }
    // What cannot become better by itself is told first.
    for (code, message, mut faults) in [
        (FailureCode::AgendaTooLarge, "A report is over a limit.", too_large),
        (FailureCode::ReportUnavailable, "A report could not be fetched.", unavailable),
    ] {
        faults.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        if let Some(first) = faults.first() {
            let detail = first.detail.clone();
            return Err(Failure::new(code, message).with_detail(detail).with_errors(faults).into());
        }
    }
    // Files finish in any order; the record has one.
    collected.files.sort_by_key(|file| (file.question, file.slot));
    collected.errors.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    collected.warnings.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    Ok(collected)
}

/// Puts what is known of the stored files into the model: contents out, digests in.
pub fn note_in(agenda: &mut Agenda, files: &[CollectedFile]) {
    for collected in files {
        let question = &mut agenda.questions[collected.question];
        let file = match collected.slot {
            Slot::Report => question.report.as_mut(),
            Slot::Attachment(index) => question.attachments.get_mut(index),
        };
        if let Some(file) = file {
            file.base64 = None;
            file.name = Some(collected.name.clone());
            file.bytes = Some(collected.stored.bytes);
            file.sha256 = Some(collected.stored.sha256.clone());
        }
    }
}

impl Output {
    fn of(stored: Stored, etag: Option<String>, round: &str) -> Self {
        Self { blob: stored.blob, sha256: stored.sha256, bytes: stored.bytes, etag, round: round.to_owned() }
    }

    fn stored(&self) -> Stored {
        Stored { blob: self.blob.clone(), sha256: self.sha256.clone(), bytes: self.bytes }
    }
}

fn finished(wanted: Wanted, stored: Stored) -> CollectedFile {
    let name = wanted.name();
    CollectedFile { question: wanted.question, slot: wanted.slot, name, media_type: wanted.file.media_type, stored }
}
