//! MERGE: from the checked agenda to the record and the documents.
//!
//! All formats are made from one model by the renderer, in a private temporary folder. Each document is a step: what another attempt or another task has made
//! from the same content is not made again. A crash leaves a temporary folder behind, which the next start removes.

use super::{
    Halt, Journal, Meter,
    collect::Collected,
    compute,
    document::{Annex, DocumentModel, Role, TEMPLATE_VERSION, meeting_date, printed_numbers},
    documents::{DocumentStore, Stored},
    files::{CollectedFile, Slot},
    renderer::{MODEL_FILE, RenderError, Rendered, Renderer},
    rules::not_applicable,
    snapshot::{canonical, step_key},
};
use crate::{
    domain::{
        agenda::{Agenda, OutcomeCategory, Question},
        failure::{Failure, FailureCode, Fault},
        protocol::{Document, Format, Record, RecordedQuestion},
        task::Phase,
    },
    engine::executor::Step,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{fmt, path::Path, sync::Arc};
use tokio_util::sync::CancellationToken;

/// What MERGE works with.
#[derive(Clone, Copy)]
pub struct Press<'a> {
    pub store: &'a DocumentStore,
    pub renderer: &'a dyn Renderer,
    /// Where private temporary folders are made.
    pub work_dir: &'a Path,
    pub formats: &'a [Format],
    pub cancelled: &'a CancellationToken,
}

impl fmt::Debug for Press<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Press").field("formats", &self.formats).finish_non_exhaustive()
    }
}

/// A protocol's content, before its documents are made.
#[derive(Debug)]
pub struct Draft {
    /// As collected, with every text made printable.
    pub collected: Collected,
    pub number: String,
    pub record: Record,
    /// What every document depends on.
    content_key: String,
    /// The same, and which documents there are.
    pub fingerprint: String,
}

/// A step's output.
#[derive(Debug, Serialize, Deserialize)]
struct Output {
    blob: String,
    sha256: String,
    bytes: u64,
    pages: Option<u32>,
}

impl Draft {
    /// Puts together what is to be printed.
    pub async fn of(collected: Collected, number: String, warnings: Vec<Fault>, formats: &[Format]) -> Arc<Self> {
        let formats = formats.to_vec();
        compute(move || Arc::new(Self::new(collected, number, warnings, &formats))).await
    }

    fn new(collected: Collected, number: String, warnings: Vec<Fault>, formats: &[Format]) -> Self {
        let record = record_of(&collected, warnings);
        let language = json!(collected.language).to_string();
        let content_key = step_key(&["protocol", &collected.snapshot.digest, &number, &language, TEMPLATE_VERSION]);
        let mut formats: Vec<&str> = formats.iter().map(|format| format.as_str()).collect();
        formats.sort_unstable();
        formats.dedup();
        let fingerprint = step_key(&["fingerprint", &content_key, &formats.join(",")]);
        Self { collected, number, record, content_key, fingerprint }
    }
}

fn record_of(collected: &Collected, warnings: Vec<Fault>) -> Record {
    let agenda = &collected.agenda;
    let questions = printed_numbers(agenda).into_iter().map(|(question, number)| RecordedQuestion {
        id: question.id.clone(),
        order: question.order,
        number,
        title: question.title.clone(),
        outcome: outcome_of(question).as_str().to_owned(),
    });
    Record {
        date: meeting_date(agenda).unwrap_or_default(),
        title: agenda.title.clone(),
        body: agenda.body.name.clone(),
        questions: questions.collect(),
        warnings,
        not_applicable: not_applicable(collected.format).into_iter().map(str::to_owned).collect(),
        origin: collected.origin.clone(),
    }
}

/// What the agenda says, else what follows from it: CHECK has seen to it that a decision without an outcome was adopted.
fn outcome_of(question: &Question) -> OutcomeCategory {
    match &question.outcome {
        Some(outcome) => outcome.category,
        None if question.decision.is_empty() => OutcomeCategory::Other,
        None => OutcomeCategory::Adopted,
    }
}

/// Makes the documents, those that are not made yet, in the order of `formats`.
///
/// # Errors
/// `render-failed`, `render-limit`, `storage-unavailable`.
pub async fn merge(draft: &Arc<Draft>, press: Press<'_>, journal: &Journal<'_>, meter: &Meter) -> Result<Vec<Document>, Halt> {
    let key_of = |format: &Format| step_key(&["document", format.as_str(), &draft.content_key]);
    let known = journal.known(press.formats.iter().map(key_of).collect()).await?;
    let mut documents = Vec::new();
    let mut missing = Vec::new();
    for format in press.formats {
        match known.get(&key_of(format)).and_then(|output| serde_json::from_str::<Output>(output).ok()) {
            Some(output) => documents.push(output.document(*format)),
            None => missing.push(*format),
        }
    }
    journal.progress(Phase::Merge, meter.add(documents.len())).await?;

    let note = |document: &Document| {
        let output = Output { blob: document.blob.clone(), sha256: document.sha256.clone(), bytes: document.bytes, pages: document.pages };
        Step { name: format!("MERGE/{}", document.format), key: key_of(&document.format), output: json!(output).to_string() }
    };
    if missing.contains(&Format::Json) {
        let printed = Arc::clone(draft);
        let stored = press.store.put(compute(move || json_document(&printed)).await.into()).await?;
        let document = document(Format::Json, stored, None);
        journal.done(Phase::Merge, meter.add(1), vec![note(&document)]).await?;
        documents.push(document);
        missing.retain(|format| *format != Format::Json);
    }
    if !missing.is_empty() {
        let folder = folder_in(press.work_dir).await?;
        for Rendered { format, path, pages } in render(draft, press, folder.path(), &missing).await? {
            let document = document(format, press.store.put_file(&path).await?, pages);
            journal.done(Phase::Merge, meter.add(1), vec![note(&document)]).await?;
            documents.push(document);
        }
    }
    documents.sort_by_key(|document| document.format);
    Ok(documents)
}

impl Output {
    fn document(self, format: Format) -> Document {
        Document { format, blob: self.blob, sha256: self.sha256, bytes: self.bytes, pages: self.pages }
    }
}

fn document(format: Format, stored: Stored, pages: Option<u32>) -> Document {
    Document { format, blob: stored.blob, sha256: stored.sha256, bytes: stored.bytes, pages }
}

/// The record as data: what the protocol says of itself, and the agenda it was made from.
fn json_document(draft: &Draft) -> String {
    let record = &draft.record;
    let snapshot: Value = serde_json::from_str(&draft.collected.snapshot.json).expect("a snapshot is JSON that we wrote ourselves");
    canonical(json!({
        "number": draft.number,
        "date": record.date,
        "title": record.title,
        "body": record.body,
        "questions": record.questions,
        "warnings": record.warnings,
        "notApplicable": record.not_applicable,
        "snapshotSha256": draft.collected.snapshot.digest,
        "agenda": snapshot,
    }))
}

async fn folder_in(work_dir: &Path) -> Result<tempfile::TempDir, Halt> {
    let work_dir = work_dir.to_owned();
    let made = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&work_dir)?;
        // For this user only (mode 0700): agendas may be confidential.
        tempfile::Builder::new().prefix("render-").tempdir_in(&work_dir)
    });
    Ok(made.await.map_err(std::io::Error::other)??)
}

async fn render(draft: &Arc<Draft>, press: Press<'_>, folder: &Path, formats: &[Format]) -> Result<Vec<Rendered>, Halt> {
    let (input, output) = (folder.join("in"), folder.join("out"));
    tokio::fs::create_dir(&input).await?;
    tokio::fs::create_dir(&output).await?;
    let annexes = lay_out(draft, press.store, &input).await?;
    let printed = Arc::clone(draft);
    let model = compute(move || {
        let collected = &printed.collected;
        let model = DocumentModel::build(&collected.agenda, &printed.number, collected.language, &annexes);
        serde_json::to_vec(&model).expect("the model is plain data with text keys, which always serializes")
    });
    let model = model.await;
    tokio::fs::write(input.join(MODEL_FILE), model).await?;
    press.renderer.render(&input, &output, formats, press.cancelled).await.map_err(|error| match error {
        RenderError::Cancelled => Halt::Stopped,
        RenderError::Io(error) => error.into(),
        RenderError::Failed(reason) => Failure::new(FailureCode::RenderFailed, "The document does not typeset.").with_detail(reason).into(),
        RenderError::Limit(reason) => {
            Failure::new(FailureCode::RenderLimit, "The document took too much time or memory.").with_detail(reason).into()
        }
    })
}

/// Puts the files that travel inside the document into the renderer's folder.
async fn lay_out(draft: &Draft, store: &DocumentStore, input: &Path) -> Result<Vec<Annex>, Halt> {
    let collected = &draft.collected;
    let mut annexes = Vec::with_capacity(collected.files.len() + 1);
    for (index, file) in collected.files.iter().enumerate() {
        let path = format!("file-{:05}", index + 1);
        if !store.copy_to(&file.stored.blob, &input.join(&path)).await? {
            let detail = format!("the blob {} is gone", file.stored.blob);
            let failure = Failure::new(FailureCode::StorageUnavailable, "A stored report is gone from the document store.");
            return Err(failure.with_detail(detail).into());
        }
        annexes.push(Annex {
            question: question_of(&collected.agenda, file.question),
            role: if file.slot == Slot::Report { Role::Report } else { Role::Attachment },
            name: printable_name(&collected.agenda, file),
            media_type: file.media_type.clone(),
            bytes: file.stored.bytes,
            sha256: file.stored.sha256.clone(),
            path,
        });
    }
    let snapshot = &collected.snapshot;
    tokio::fs::write(input.join("snapshot"), &snapshot.json).await?;
    annexes.push(Annex {
        question: None,
        role: Role::Snapshot,
        name: "agenda.json".to_owned(),
        media_type: "application/json".to_owned(),
        bytes: snapshot.json.len() as u64,
        sha256: snapshot.digest.clone(),
        path: "snapshot".to_owned(),
    });
    Ok(annexes)
}

/// The file's name as CHECK has made it printable.
fn printable_name(agenda: &Agenda, file: &CollectedFile) -> String {
    let question = agenda.questions.get(file.question);
    let in_model = question.and_then(|question| match file.slot {
        Slot::Report => question.report.as_ref(),
        Slot::Attachment(index) => question.attachments.get(index),
    });
    in_model.and_then(|model| model.name.clone()).unwrap_or_else(|| file.name.clone())
}

fn question_of(agenda: &Agenda, index: usize) -> Option<String> {
    agenda.questions.get(index).map(|question| question.id.clone())
}
