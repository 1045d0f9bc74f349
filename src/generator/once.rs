//! One protocol from one agenda, without a server, a database or a task: what `protocol-bridge generate` and `check` do.
//!
//! The same phases as a task's, with steps kept in memory and files in a temporary folder: a crash leaves nothing behind.

use super::{
    Halt, Journal, Meter,
    documents::DocumentStore,
    facade::CheckReport,
    files::FileRoom,
    links::Links,
    merge::{self, Draft, Press},
    number,
    renderer::Renderer,
    settings::Settings,
    source::{Source, agenda_source::is_url, folder::Folder, http::HttpSource, samples, upstream::Upstream},
    work::{Examined, Work},
};
use crate::{
    base::{clock::Clock, config::Config},
    domain::{
        agenda::Language,
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        protocol::{Format, Record},
        task::{Phase, Progress},
    },
};
use bytes::Bytes;
use serde_json::Value;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What to generate.
#[derive(Debug, Clone)]
pub struct GenerateInput {
    /// A URL, the path of a file, the id of a bundled sample, or of an agenda of the configured source, tried in this order.
    pub agenda: String,
    pub formats: Vec<Format>,
    /// Formats are not taken from here.
    pub config: Config,
    pub clock: Clock,
    pub cancelled: CancellationToken,
}

/// A finished document, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedDocument {
    pub format: Format,
    pub bytes: Bytes,
    pub sha256: String,
    pub pages: Option<u32>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    pub agenda_id: String,
    /// The agenda's own number; without a register there is no other.
    pub number: Option<String>,
    pub record: Record,
    pub warnings: Vec<Fault>,
    pub documents: Vec<GeneratedDocument>,
}

/// Printed where there is no number: it is filled in by hand.
const BLANK: &str = "____";

/// Told as the work goes on.
pub type OnProgress<'a> = &'a (dyn Fn(Phase, Progress) + Send + Sync);

/// Generates.
///
/// # Errors
/// As a task would fail, with everything that is wrong with the agenda at once.
pub async fn generate_once(input: GenerateInput, renderer: &dyn Renderer, on_progress: OnProgress<'_>) -> Result<Generated, Failure> {
    let cancelled = input.cancelled.clone();
    tokio::select! {
        biased;
        () = cancelled.cancelled() => Err(stopped()),
        generated = Box::pin(generate(input, renderer, on_progress)) => generated.map_err(failure_of),
    }
}

/// COLLECT and CHECK only. Formats are not looked at.
///
/// # Errors
/// When the agenda cannot be had at all.
pub async fn check_once(input: GenerateInput) -> Result<CheckReport, Failure> {
    let folder = temporary_folder().map_err(failure_of)?;
    let mut bench = Bench::new(&input, folder.path()).map_err(failure_of)?;
    bench.settings = bench.settings.impatient();
    let agenda_id = bench.id.clone();
    match Box::pin(bench.examine(&Journal::memory(None, &|_, _| {}), &Meter::default())).await {
        Ok(examined) => {
            let named = examined.collected.agenda.agenda_id.parse().unwrap_or(agenda_id);
            Ok(CheckReport::of(named, examined))
        }
        Err(Halt::Failed(failure)) if failure.code == FailureCode::AgendaInvalid => {
            Ok(CheckReport::unreadable(agenda_id, bench.settings.language, failure.errors))
        }
        Err(halt) => Err(failure_of(halt)),
    }
}

/// What the agenda becomes in our own format, if it comes in another: where pointers point to.
///
/// # Errors
/// When the agenda cannot be had, or cannot be translated.
pub async fn map_once(input: GenerateInput) -> Result<Value, Failure> {
    let folder = temporary_folder().map_err(failure_of)?;
    let bench = Bench::new(&input, folder.path()).map_err(failure_of)?;
    let fetched = bench.work.source.fetch(&bench.id).await?;
    let (journal, meter, round) = (Journal::memory(None, &|_, _| {}), Meter::default(), fetched.revision());
    let room = FileRoom { source: &bench.work.source, outside: &bench.work.outside, store: &bench.work.store, settings: &bench.settings };
    let language = bench.settings.language.unwrap_or(Language::Ru);
    let links = Links::new(room, &fetched.address, &round, language, &journal, &meter);
    let asked = bench.id_is_asked.then_some(&bench.id);
    let parsed = Box::pin(bench.settings.formats().read(&fetched.bytes, asked, &input.clock, &links)).await.map_err(failure_of)?;
    match parsed.mapped {
        Some(mapped) => Ok(mapped),
        None if parsed.faults.is_empty() => {
            serde_json::from_slice(&fetched.bytes).map_err(|error| Failure::new(FailureCode::AgendaInvalid, error.to_string()))
        }
        None => Err(Failure::new(FailureCode::AgendaInvalid, "The agenda cannot be translated.").with_errors(parsed.faults)),
    }
}

async fn generate(input: GenerateInput, renderer: &dyn Renderer, on_progress: OnProgress<'_>) -> Result<Generated, Halt> {
    let folder = temporary_folder()?;
    let bench = Bench::new(&input, folder.path())?;
    let (journal, meter) = (Journal::memory(None, on_progress), Meter::default());
    let examined = bench.examine(&journal, &meter).await?;
    if let Some(failure) = examined.failure() {
        return Err(failure.into());
    }
    let warnings = examined.warnings.clone();
    let number = number::own_number(&examined.collected);
    let printed = number.clone().unwrap_or_else(|| BLANK.to_owned());
    let draft = Draft::of(examined.collected, printed, examined.warnings, &input.formats).await;
    let work_dir = folder.path().join("render");
    let press = Press { store: &bench.work.store, renderer, work_dir: &work_dir, formats: &input.formats, cancelled: &input.cancelled };
    let made = bench.work.timed(Phase::Merge, Box::pin(merge::merge(&draft, press, &journal, &meter))).await?;
    let mut documents = Vec::with_capacity(made.len());
    for document in made {
        let Some(bytes) = bench.work.store.read(&document.blob).await? else {
            return Err(Failure::new(FailureCode::StorageUnavailable, "A document is gone from the temporary folder.").into());
        };
        documents.push(GeneratedDocument { format: document.format, bytes, sha256: document.sha256, pages: document.pages });
    }
    journal.done(Phase::Publish, meter.add(1), Vec::new()).await?;
    Ok(Generated { agenda_id: draft.collected.agenda.agenda_id.clone(), number, record: draft.record.clone(), warnings, documents })
}

/// What is set up for one agenda.
struct Bench {
    work: Work,
    settings: Settings,
    id: AgendaId,
    id_is_asked: bool,
}

impl Bench {
    fn new(input: &GenerateInput, folder: &Path) -> Result<Self, Halt> {
        let Named { source, id, id_is_asked } = Named::by(input)?;
        let outside = Upstream::new(&input.config.agenda, None).map_err(unusable)?;
        let store = DocumentStore::in_folder(&folder.join("documents"))?;
        let settings = Settings { formats: input.formats.clone(), ..Settings::from(&input.config) };
        Ok(Self { work: Work { source, outside, store, clock: input.clock.clone() }, settings, id, id_is_asked })
    }

    async fn examine(&self, journal: &Journal<'_>, meter: &Meter) -> Result<Examined, Halt> {
        self.work.examine(&self.id, self.id_is_asked, &self.settings, journal, meter).await
    }
}

/// What an agenda's name leads to.
struct Named {
    source: Source,
    id: AgendaId,
    /// Whether the agenda must bear the id; where it names itself, the id is only a word for messages.
    id_is_asked: bool,
}

impl Named {
    fn by(input: &GenerateInput) -> Result<Self, Halt> {
        let (name, config) = (input.agenda.as_str(), &input.config.agenda);
        let itself = |source| {
            let id = "agenda".parse().expect("a lower-case word is an agenda id");
            Self { source, id, id_is_asked: false }
        };
        if is_url(name) {
            return Ok(itself(Source::Http(HttpSource::at(name, config).map_err(unusable)?)));
        }
        if Path::new(name).is_file() {
            return Ok(itself(Source::Folder(Folder::of_file(Path::new(name))?)));
        }
        let Ok(id) = name.parse() else {
            return Err(
                Failure::new(FailureCode::AgendaNotFound, format!("There is no file {name:?}, and no agenda has such an id.")).into()
            );
        };
        let is_sample = samples::ids().any(|sample| sample == id);
        let source = if is_sample { Source::Samples } else { Source::open(config).map_err(unusable)? };
        Ok(Self { source, id, id_is_asked: true })
    }
}

fn temporary_folder() -> Result<tempfile::TempDir, Halt> {
    Ok(tempfile::Builder::new().prefix("protocol-bridge-").tempdir()?)
}

fn unusable(reason: String) -> Halt {
    Failure::new(FailureCode::AgendaNotFound, "The agenda's address cannot be used.").with_detail(reason).into()
}

fn failure_of(halt: Halt) -> Failure {
    match halt {
        Halt::Failed(failure) => *failure,
        Halt::Stopped => stopped(),
    }
}

fn stopped() -> Failure {
    Failure::new(FailureCode::Cancelled, "Stopped.")
}
