//! Report files and attachments: opened, streamed into the document store, and compared with what the agenda announces.
//!
//! Each file is a step by itself: a crash costs the files that were on their way. The key holds the announced digest where there is one; otherwise the question,
//! so that a file is fetched again when its question changes.

use super::{
    Halt, Journal, Meter, compute,
    documents::{DocumentStore, StoreError, Stored},
    settings::Settings,
    snapshot::{canonical, step_key},
    source::{Address, LinkError, OpenedFile, Source, upstream::Upstream},
    words::{Words, short},
};
use crate::{
    base::chain::chain,
    domain::{
        agenda::{Agenda, File, Language},
        failure::{Failure, FailureCode, Fault},
        task::Phase,
    },
    engine::executor::Step,
};
use base64::Engine as _;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where files come from and go to.
#[derive(Debug, Clone, Copy)]
pub struct FileRoom<'a> {
    pub source: &'a Source,
    /// For links that lead out of a folder.
    pub outside: &'a Upstream,
    pub store: &'a DocumentStore,
    pub settings: &'a Settings,
}

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

/// Which file of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    Report,
    Attachment(usize),
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

/// A file that is wanted.
#[derive(Debug)]
struct Wanted {
    question: usize,
    slot: Slot,
    file: File,
    pointer: String,
    step: String,
    key: String,
}

/// A step's output.
#[derive(Debug, Serialize, Deserialize)]
struct Output {
    blob: String,
    sha256: String,
    bytes: u64,
}

enum Outcome {
    Stored(Stored),
    Wrong(Fault),
    /// Not followed, and the protocol does without.
    LeftOut(Fault),
    Unavailable(String),
}

const ALTERED: Words = Words {
    ru: "Файл «{name}» не тот, что заявлен: {what}. Проверьте файл или данные о нём.",
    en: "The file “{name}” is not the one announced: {what}. Check the file or what is said of it.",
    de: "Die Datei „{name}“ ist nicht die angekündigte: {what}. Prüfen Sie die Datei oder die Angaben dazu.",
};
const OTHER_DIGEST: Words =
    Words {
        ru: "другая контрольная сумма SHA-256", en: "its SHA-256 differs", de: "die SHA-256-Prüfsumme weicht ab"
    };
const OTHER_SIZE: Words =
    Words {
        ru: "{found} байт вместо {announced}", en: "{found} bytes instead of {announced}", de: "{found} statt {announced} Byte"
    };
const A_PAGE: Words = Words {
    ru: "вместо файла пришла веб-страница", en: "a web page came instead", de: "stattdessen kam eine Webseite"
};
const WITHOUT_CONTENT: Words = Words {
    ru: "У файла нет ни адреса (href), ни содержимого (base64). Укажите одно из двух.",
    en: "The file has neither an address (href) nor content (base64). Give one of them.",
    de: "Die Datei hat weder eine Adresse (href) noch einen Inhalt (base64). Geben Sie eines davon an.",
};
const NOT_BASE64: Words = Words {
    ru: "Содержимое файла «{name}» — не base64. Закодируйте его заново.",
    en: "The content of the file “{name}” is not base64. Encode it again.",
    de: "Der Inhalt der Datei „{name}“ ist kein Base64. Kodieren Sie ihn neu.",
};
const NOT_FOLLOWED: Words = Words {
    ru: "Файл «{name}» не может быть взят: {reason}. Разместите его рядом с повесткой или разрешите узел в agenda.allowed_hosts.",
    en: "The file “{name}” may not be fetched: {reason}. Put it beside the agenda, or allow the host in agenda.allowed_hosts.",
    de: "Die Datei „{name}“ darf nicht geholt werden: {reason}. Legen Sie sie neben die Tagesordnung, oder erlauben Sie den Host in agenda.allowed_hosts.",
};

/// After so many files that cannot be had the rest is not tried: their holder is down, and each would take its time-outs.
const MAX_UNAVAILABLE: usize = 3;

/// Brings all files into the store, those that are not there yet.
///
/// # Errors
/// `report-unavailable`, `agenda-too-large`, `storage-unavailable`. What is wrong with the agenda itself is in [`CollectedFiles`].
pub async fn collect(
    agenda: &Agenda,
    places: &[usize],
    address: &Address,
    room: FileRoom<'_>,
    language: Language,
    journal: &Journal<'_>,
    meter: &Meter,
) -> Result<CollectedFiles, Halt> {
    let wanted = wanted(agenda, places, room.source);
    let known = journal.known(wanted.iter().map(|wanted| wanted.key.clone()).collect()).await?;
    let mut collected = CollectedFiles::default();
    let mut unavailable = Vec::new();
    let mut missing = Vec::new();
    let mut there = 0;
    for wanted in wanted {
        match known.get(&wanted.key).and_then(|output| serde_json::from_str::<Output>(output).ok()) {
            Some(Output { blob, sha256, bytes }) => {
                there += 1;
                collected.files.push(finished(wanted, Stored { blob, sha256, bytes }));
            }
            None => missing.push(wanted),
        }
    }
    journal.progress(Phase::Collect, meter.add(there)).await?;

    let fetches = stream::iter(missing).map(|wanted| async move {
        let outcome = fetch(&wanted, address, room, language).await;
        (wanted, outcome)
    });
    // Those that are finished together are noted together: one transaction for many small files.
    let mut finished_together = fetches.buffer_unordered(room.settings.concurrency).ready_chunks(32);
    while let Some(batch) = finished_together.next().await {
        let mut steps = Vec::new();
        let done = batch.len();
        for (wanted, outcome) in batch {
            collected.requests += usize::from(wanted.file.base64.is_none());
            match outcome? {
                Outcome::Stored(stored) => {
                    let output = json!(Output { blob: stored.blob.clone(), sha256: stored.sha256.clone(), bytes: stored.bytes });
                    steps.push(Step { name: wanted.step.clone(), key: wanted.key.clone(), output: output.to_string() });
                    collected.files.push(finished(wanted, stored));
                }
                Outcome::Wrong(fault) => collected.errors.push(fault),
                Outcome::LeftOut(fault) => collected.warnings.push(fault),
                Outcome::Unavailable(reason) => {
                    let name = name_of(&wanted.file);
                    let detail = format!("“{}”: {reason}", short(&name));
                    unavailable.push(Fault { code: "report-unavailable".to_owned(), pointer: wanted.pointer, detail });
                }
            }
        }
        journal.done(Phase::Collect, meter.add(done), steps).await?;
        if unavailable.len() >= MAX_UNAVAILABLE {
            break;
        }
    }
    if let Some(first) = unavailable.first() {
        let detail = first.detail.clone();
        let failure = Failure::new(FailureCode::ReportUnavailable, "A report could not be fetched.");
        return Err(failure.with_detail(detail).with_errors(unavailable).into());
    }
    // Files finish in any order; the record has one.
    collected.files.sort_by_key(|file| (file.question, file.slot));
    collected.errors.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    collected.warnings.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    Ok(collected)
}

/// How many files an agenda refers to.
#[must_use]
pub fn count(agenda: &Agenda) -> usize {
    agenda.questions.iter().map(|question| usize::from(question.report.is_some()) + question.attachments.len()).sum()
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

fn wanted(agenda: &Agenda, places: &[usize], source: &Source) -> Vec<Wanted> {
    let mut all = Vec::new();
    for (index, question) in agenda.questions.iter().enumerate() {
        let report = question.report.iter().map(|file| (Slot::Report, file));
        let attachments = question.attachments.iter().enumerate().map(|(at, file)| (Slot::Attachment(at), file));
        for (slot, file) in report.chain(attachments) {
            let (place, end) = match slot {
                Slot::Report => (format!("/questions/{}/report", places[index]), "report".to_owned()),
                Slot::Attachment(at) => (format!("/questions/{}/attachments/{at}", places[index]), format!("attachment/{}", at + 1)),
            };
            let identity = match (&file.base64, &file.sha256) {
                (Some(content), _) => step_key(&[content]),
                (None, Some(sha256)) => sha256.to_ascii_lowercase(),
                // Nothing tells whether it has changed: taken for the same as long as its question is.
                (None, None) => step_key(&[&canonical(json!(question))]),
            };
            let key = step_key(&["file", &source.name(), file.href.as_deref().unwrap_or(""), &identity, &json!(file.bytes).to_string()]);
            let step = format!("COLLECT/question/{}/{end}", index + 1);
            all.push(Wanted { question: index, slot, file: file.clone(), pointer: place, step, key });
        }
    }
    all
}

fn finished(wanted: Wanted, stored: Stored) -> CollectedFile {
    let name = name_of(&wanted.file);
    CollectedFile { question: wanted.question, slot: wanted.slot, name, media_type: wanted.file.media_type, stored }
}

/// The name to print: the given one, else the end of the address.
fn name_of(file: &File) -> String {
    let from_address = || {
        let path = file.href.as_deref()?.split(['?', '#']).next()?;
        let end = path.rsplit('/').next().filter(|end| !end.is_empty())?;
        Some(percent_encoding::percent_decode_str(end).decode_utf8_lossy().into_owned())
    };
    file.name.clone().filter(|name| !name.trim().is_empty()).or_else(from_address).unwrap_or_else(|| "file".to_owned())
}

async fn fetch(wanted: &Wanted, address: &Address, room: FileRoom<'_>, language: Language) -> Result<Outcome, Halt> {
    let file = &wanted.file;
    let name = name_of(file);
    let fault = |code: &str, detail: String| Fault { code: code.to_owned(), pointer: wanted.pointer.clone(), detail };
    if file.bytes.is_some_and(|bytes| bytes > room.settings.max_report_bytes) {
        return Err(too_large(&name, room.settings.max_report_bytes).into());
    }
    if let Some(content) = &file.base64 {
        let content = content.clone();
        let decoded = compute(move || {
            let content: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            base64::engine::general_purpose::STANDARD.decode(content)
        });
        let Ok(content) = decoded.await else {
            return Ok(Outcome::Wrong(fault("report-altered", NOT_BASE64.say(language, &[("name", &short(&name))]))));
        };
        if content.len() as u64 > room.settings.max_report_bytes {
            return Err(too_large(&name, room.settings.max_report_bytes).into());
        }
        let stored = room.store.put(content.into()).await?;
        return Ok(compared(stored, file, &name, language, fault));
    }
    let Some(href) = &file.href else {
        return Ok(Outcome::Wrong(fault("file-without-content", WITHOUT_CONTENT.text(language).to_owned())));
    };
    let opened = match room.source.open_file(address, href, room.outside).await {
        Ok(opened) => opened,
        Err(LinkError::Unavailable(reason)) => return Ok(Outcome::Unavailable(reason)),
        Err(LinkError::Refused(reason)) => {
            let told = fault("file-not-followed", NOT_FOLLOWED.say(language, &[("name", &short(&name)), ("reason", &reason)]));
            // A folder's agenda may name files elsewhere, as exports of other systems do; the protocol is made without them.
            let is_elsewhere = matches!(address, Address::Folder) && super::source::agenda_source::is_url(href);
            return Ok(if is_elsewhere { Outcome::LeftOut(told) } else { Outcome::Wrong(told) });
        }
    };
    if opened.media_type.as_deref() == Some("text/html") && file.media_type != "text/html" {
        let what = A_PAGE.text(language);
        return Ok(Outcome::Wrong(fault("report-altered", ALTERED.say(language, &[("name", &short(&name)), ("what", what)]))));
    }
    match receive(opened, &name, room).await? {
        Ok(stored) => Ok(compared(stored, file, &name, language, fault)),
        Err(reason) => Ok(Outcome::Unavailable(reason)),
    }
}

/// Streams a file into the store; the inner error says why its holder broke off.
async fn receive(mut opened: OpenedFile, name: &str, room: FileRoom<'_>) -> Result<Result<Stored, String>, Halt> {
    let limit = room.settings.max_report_bytes;
    if opened.bytes.is_some_and(|bytes| bytes > limit) {
        return Err(too_large(name, limit).into());
    }
    let mut writer = room.store.writer().await?;
    while let Some(piece) = opened.content.next().await {
        match piece {
            Ok(piece) => writer.write(&piece).await?,
            Err(error) => {
                tracing::info!(file = name, error = chain(&error), "a file broke off");
                return Ok(Err("it did not arrive to the end in time".to_owned()));
            }
        }
        if writer.bytes() > limit {
            return Err(too_large(name, limit).into());
        }
    }
    Ok(Ok(writer.finish().await.map_err(|error: StoreError| Halt::from(error))?))
}

fn compared(stored: Stored, file: &File, name: &str, language: Language, fault: impl Fn(&str, String) -> Fault) -> Outcome {
    let altered = |what: &str| Outcome::Wrong(fault("report-altered", ALTERED.say(language, &[("name", &short(name)), ("what", what)])));
    if let Some(announced) = file.bytes
        && announced != stored.bytes
    {
        let sizes = [("found", stored.bytes.to_string()), ("announced", announced.to_string())];
        return altered(&OTHER_SIZE.say(language, &[(sizes[0].0, &sizes[0].1), (sizes[1].0, &sizes[1].1)]));
    }
    // What is no digest at all is told by a rule.
    if file.sha256.as_ref().is_some_and(|announced| announced.len() == 64 && !announced.eq_ignore_ascii_case(&stored.sha256)) {
        return altered(OTHER_DIGEST.text(language));
    }
    Outcome::Stored(stored)
}

fn too_large(name: &str, limit: u64) -> Failure {
    Failure::new(FailureCode::AgendaTooLarge, "A report is over a limit.")
        .with_detail(format!("generator.max_report_size is {limit} bytes; “{}” is larger", short(name)))
}
