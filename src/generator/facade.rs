//! The generator as the floors above see it.

use super::{
    Halt, Journal, Meter,
    check::check_now,
    collect::digest_of,
    compute,
    documents::DocumentStore,
    files::FileRoom,
    format::Parsed,
    links::Links,
    renderer::Renderer,
    rules::not_applicable,
    settings::Settings,
    snapshot::Snapshot,
    source::{Fetched, Source, upstream::Upstream},
    work::{Examined, Work},
};
use crate::{
    base::{clock::Clock, config, entropy::Entropy},
    domain::{
        agenda::Language,
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        protocol::{Origin, Protocol},
    },
    store::Db,
};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The generator; cheap to clone.
#[derive(Clone)]
pub struct Generator(Arc<Parts>);

/// What the generator is made of.
pub(super) struct Parts {
    pub(super) work: Work,
    pub(super) settings: Settings,
    pub(super) db: Db,
    pub(super) entropy: Entropy,
    pub(super) renderer: Arc<dyn Renderer>,
    /// Where the renderer's private folders are made.
    pub(super) work_dir: PathBuf,
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").field("work", &self.0.work).finish_non_exhaustive()
    }
}

/// An agenda in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAgenda {
    pub agenda_id: AgendaId,
    pub title: String,
    pub date: String,
    /// COLLECT and CHECK find no error.
    pub ready: bool,
    pub errors: Vec<Fault>,
}

/// What COLLECT and CHECK say about an agenda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    pub agenda_id: AgendaId,
    /// Of the words below.
    pub language: Language,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
    /// Codes of the rules that the agenda's format gives nothing to look at.
    pub not_applicable: Vec<&'static str>,
}

impl CheckReport {
    /// What an examined agenda comes to.
    #[must_use]
    pub fn of(agenda_id: AgendaId, examined: Examined) -> Self {
        let Examined { collected, mut errors, warnings } = examined;
        errors.extend(collected.not_ready);
        Self { agenda_id, language: collected.language, errors, warnings, not_applicable: not_applicable(collected.format) }
    }

    /// An agenda that cannot be read at all is what its faults say.
    #[must_use]
    pub fn unreadable(agenda_id: AgendaId, language: Option<Language>, errors: Vec<Fault>) -> Self {
        let language = language.unwrap_or(Language::Ru);
        Self { agenda_id, language, errors, warnings: Vec::new(), not_applicable: Vec::new() }
    }
}

/// Temporary folders older than this belong to nobody who lives.
const ABANDONED: Duration = Duration::from_hours(24);

impl Generator {
    /// # Errors
    /// When the source or store that is configured cannot be used.
    pub fn new(
        config: &config::Config,
        db: Db,
        clock: Clock,
        entropy: Entropy,
        documents: DocumentStore,
        renderer: Arc<dyn Renderer>,
    ) -> Result<Self, String> {
        let source = Source::open(&config.agenda)?;
        let outside = Upstream::new(&config.agenda, None)?;
        let work_dir = config.data_dir.join("tmp");
        remove_abandoned(&work_dir, &clock);
        let work = Work { source, outside, store: documents, clock };
        Ok(Self(Arc::new(Parts { work, settings: Settings::from(config), db, entropy, renderer, work_dir })))
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0
    }

    /// The agendas that the source can list, by id, after `after`. A source that cannot list answers none. Nothing is waited for and no file is fetched.
    ///
    /// # Errors
    /// When the source does not answer.
    pub async fn agendas(&self, after: Option<AgendaId>, limit: usize) -> Result<(Vec<ListedAgenda>, Option<AgendaId>), Failure> {
        // One more than asked for tells whether there is a next page.
        let mut ids = self.0.work.source.list(after.as_ref(), limit.saturating_add(1)).await?;
        let next = if ids.len() > limit {
            ids.truncate(limit);
            ids.last().cloned()
        } else {
            None
        };
        let mut listed = Vec::with_capacity(ids.len());
        for id in ids {
            listed.push(self.listed(id).await);
        }
        Ok((listed, next))
    }

    async fn listed(&self, id: AgendaId) -> ListedAgenda {
        let settings = &self.0.settings;
        let parsed = match self.0.work.source.fetch(&id).await {
            Ok(fetched) => self.read(&fetched, &id).await,
            Err(error) => Err(Failure::from(error).into()),
        };
        let mut listed = ListedAgenda { agenda_id: id, title: String::new(), date: String::new(), ready: false, errors: Vec::new() };
        match parsed {
            Ok(parsed) => {
                listed.errors = parsed.faults;
                if let Some(agenda) = parsed.agenda {
                    let language = settings.language_of(&agenda);
                    let (format, places) = (parsed.format, parsed.places);
                    let (not_ready, checked) = compute(move || {
                        let not_ready = super::collect::not_ready(&agenda, format, &places, language);
                        (not_ready, check_now(agenda, format, &places, language))
                    })
                    .await;
                    listed.errors.extend(super::work::without_waiting(checked.errors, &not_ready));
                    listed.errors.extend(not_ready);
                    listed.date = super::document::meeting_date(&checked.agenda).unwrap_or_default();
                    listed.title = checked.agenda.title;
                }
            }
            Err(Halt::Failed(failure)) => {
                let detail = failure.detail.unwrap_or(failure.message);
                listed.errors = vec![Fault { code: failure.code.as_str().to_owned(), pointer: String::new(), detail }];
            }
            Err(Halt::Stopped) => {}
        }
        listed.ready = listed.errors.is_empty();
        listed
    }

    /// Reads an agenda with what it links to, without its files.
    async fn read(&self, fetched: &Fetched, id: &AgendaId) -> Result<Parsed, Halt> {
        let Work { source, outside, store, clock } = &self.0.work;
        let settings = &self.0.settings;
        let journal = Journal::memory(Some(&self.0.db), &|_, _| {});
        let (meter, round) = (Meter::default(), fetched.revision());
        let room = FileRoom { source, outside, store, settings };
        let links = Links::new(room, &fetched.address, &round, settings.language.unwrap_or(Language::Ru), &journal, &meter);
        Box::pin(settings.formats().read(&fetched.bytes, Some(id), clock, &links)).await
    }

    /// COLLECT and CHECK without a task, told in the language asked for, else the agenda's.
    ///
    /// # Errors
    /// When the agenda cannot be had at all.
    pub async fn check(&self, agenda_id: &AgendaId, language: Option<Language>) -> Result<CheckReport, Failure> {
        let journal = Journal::memory(Some(&self.0.db), &|_, _| {});
        let settings = self.0.settings.impatient();
        let settings = Settings { language: language.or(settings.language), ..settings };
        let meter = Meter::default();
        let examined = Box::pin(self.0.work.examine(agenda_id, true, &settings, &journal, &meter)).await;
        match examined {
            Ok(examined) => Ok(CheckReport::of(agenda_id.clone(), examined)),
            Err(Halt::Failed(failure)) if failure.code == FailureCode::AgendaInvalid => {
                Ok(CheckReport::unreadable(agenda_id.clone(), settings.language, failure.errors))
            }
            Err(Halt::Failed(failure)) => Err(*failure),
            Err(Halt::Stopped) => Err(Failure::new(FailureCode::Internal, "The check was stopped.")),
        }
    }

    /// Whether the agenda still is what `protocol` was made from; no answer within `patience` counts as yes.
    pub async fn is_unchanged(&self, protocol: &Protocol, patience: Duration) -> bool {
        let clock = &self.0.work.clock;
        tokio::select! {
            biased;
            is_unchanged = self.compare(protocol) => is_unchanged,
            () = clock.sleep(patience) => true,
        }
    }

    async fn compare(&self, protocol: &Protocol) -> bool {
        let Origin { etag, digest } = &protocol.record.origin;
        let fetched = match self.0.work.source.fetch_if_changed(&protocol.agenda_id, etag.as_deref()).await {
            Ok(Some(fetched)) => fetched,
            // Not modified; or the source does not answer, and the caller gets what it is owed.
            Ok(None) | Err(super::source::SourceError::Unavailable(_)) => return true,
            Err(_) => return false,
        };
        if digest_of(&fetched.bytes) == *digest {
            return true;
        }
        let Ok(parsed) = self.read(&fetched, &protocol.agenda_id).await else { return false };
        match parsed.agenda {
            Some(agenda) if parsed.faults.is_empty() => compute(move || Snapshot::of(&agenda).digest).await == *digest,
            _ => false,
        }
    }

    #[must_use]
    pub fn documents(&self) -> &DocumentStore {
        &self.0.work.store
    }
}

/// Removes temporary folders that a crash left behind. Others who share the folder may be using younger ones.
fn remove_abandoned(work_dir: &Path, clock: &Clock) {
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(clock.now().as_micros()).unwrap_or(0));
    let Ok(entries) = std::fs::read_dir(work_dir) else { return };
    for entry in entries.flatten() {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let is_abandoned = changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > ABANDONED));
        if is_abandoned && entry.file_name().to_string_lossy().starts_with("render-") {
            // It is in nobody's way if it cannot be removed.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
