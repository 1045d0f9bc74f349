//! COLLECT: the agenda, once every question is ready, and its files; from them the canonical snapshot.
//!
//! The agenda's bytes are a step, each object that it links to is one, each file is one. An attempt after a crash starts from the stored agenda without asking the source. A replay asks again, and so
//! does the attempt after one that failed because of the agenda or its files: they may have been corrected meanwhile.

use super::{
    Halt, Journal, Meter, compute,
    documents::hex,
    files::{self, CollectedFile, FileRoom},
    format::{AgendaFormat, Parsed},
    links::Links,
    snapshot::{Snapshot, step_key},
    source::{Fetched, Source},
    stored_agenda::StoredAgenda,
    words::{Words, short},
};
use crate::{
    base::clock::Clock,
    domain::{
        agenda::{Agenda, Language},
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        protocol::Origin,
        task::Phase,
    },
    engine::executor::Step,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// Collects one agenda.
#[derive(Debug, Clone, Copy)]
pub struct Collector<'a> {
    pub id: &'a AgendaId,
    /// Whether the agenda must bear this id.
    pub id_is_asked: bool,
    pub room: FileRoom<'a>,
    pub clock: &'a Clock,
    pub journal: &'a Journal<'a>,
    pub meter: &'a Meter,
}

/// A collected agenda.
#[derive(Debug)]
pub struct Collected {
    /// With those questions that could be read; contents of files are in the store.
    pub agenda: Agenda,
    /// In which it came.
    pub format: AgendaFormat,
    pub places: Vec<usize>,
    pub language: Language,
    pub files: Vec<CollectedFile>,
    pub origin: Origin,
    pub snapshot: Snapshot,
    /// What could not be read, and files that are not what they should be.
    pub errors: Vec<Fault>,
    /// Questions whose report is not signed.
    pub not_ready: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// One state of the agenda, with what it links to.
struct Read {
    fetched: Fetched,
    /// Names this task and this state.
    round: String,
    parsed: Parsed,
    /// How many objects it links to, and for how many of them somebody was asked.
    links: usize,
    requests: usize,
}

const STEP: &str = "COLLECT/agenda";
/// Before a digest of the agenda's bytes, where it is not one of its snapshot.
const BYTES: &str = "bytes:";
/// Rounds after which an agenda is said to keep changing.
const MAX_ROUNDS: usize = 3;
/// Between two looks at an agenda that is not ready.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// No sample is slower.
const MAX_SAMPLE_DELAY: Duration = Duration::from_mins(10);

const NOT_READY: Words = Words {
    ru: "Вопрос {number} «{title}»: доклад ещё не подписан (состояние «{status}»). Подпишите доклад и повторите.",
    en: "Question {number} “{title}”: its report is not signed yet (status “{status}”). Sign the report and ask again.",
    de: "Tagesordnungspunkt {number} „{title}“: der Bericht ist noch nicht unterzeichnet (Status „{status}“). Unterzeichnen Sie den Bericht und wiederholen Sie die Anfrage.",
};

impl Collector<'_> {
    /// Collects.
    ///
    /// # Errors
    /// The failures of COLLECT. An agenda that is not ready or wrong is no error here: the caller tells it together with what CHECK finds.
    pub async fn collect(&self) -> Result<Collected, Halt> {
        let mut fetched = match self.stored().await? {
            Some(stored) => stored,
            None => self.fetch().await?,
        };
        for _ in 0..MAX_ROUNDS {
            let read = self.once_ready(fetched).await?;
            let (etag, revision, links) = (read.fetched.etag.clone(), read.fetched.revision(), read.requests);
            let (collected, requests) = self.round(read).await?;
            // One request saw one state of things; more may have seen several.
            if links + requests == 0 || !self.room.source.is_remote() {
                return Ok(collected);
            }
            match self.room.source.fetch_if_changed(self.id, etag.as_deref()).await.map_err(Failure::from)? {
                Some(other) if other.revision() != revision => fetched = other,
                _ => return Ok(collected),
            }
        }
        let failure = Failure::new(FailureCode::AgendaKeepsChanging, "The agenda changed in each round of collecting.");
        self.forget().await?;
        Err(failure.with_detail(format!("it was collected {MAX_ROUNDS} times")).into())
    }

    /// Forgets the stored agenda, so that the next attempt reads it again.
    ///
    /// # Errors
    /// [`Halt::Stopped`] when the lease is gone.
    pub async fn forget(&self) -> Result<(), Halt> {
        let step = Step { name: STEP.to_owned(), key: step_key(&["read-again"]), output: "null".to_owned() };
        self.journal.done(Phase::Collect, self.meter.progress(), vec![step]).await
    }

    /// What this task itself stored in an earlier attempt.
    async fn stored(&self) -> Result<Option<Fetched>, Halt> {
        let Some(output) = self.journal.own(STEP).await? else { return Ok(None) };
        let Ok(Some(stored)) = serde_json::from_str::<Option<StoredAgenda>>(&output) else { return Ok(None) };
        let bytes = self.room.store.read(&stored.blob).await?;
        Ok(bytes.and_then(|bytes| stored.fetched(bytes)))
    }

    async fn fetch(&self) -> Result<Fetched, Halt> {
        self.journal.progress(Phase::Collect, self.meter.progress()).await?;
        Ok(self.room.source.fetch(self.id).await.map_err(Failure::from)?)
    }

    /// Looks at the agenda again for as long as it is not ready and patience lasts: the caller may ask before its own commit.
    async fn once_ready(&self, mut fetched: Fetched) -> Result<Read, Halt> {
        let deadline = self.clock.monotonic() + self.room.settings.ready_grace;
        let asked = self.id_is_asked.then_some(self.id);
        loop {
            self.meter.reset();
            self.note(&fetched).await?;
            let round = format!("{}/{}", self.journal.scope(), fetched.revision());
            let settings = self.room.settings;
            let language = settings.language.unwrap_or(Language::Ru);
            let links = Links::new(self.room, &fetched.address, &round, language, self.journal, self.meter);
            let parsed = settings.formats().read(&fetched.bytes, asked, self.clock, &links).await?;
            let (links, requests) = (links.wanted(), links.requests());
            let is_ready =
                parsed.agenda.as_ref().is_none_or(|agenda| agenda.questions.iter().all(crate::domain::agenda::Question::is_ready));
            let now = self.clock.monotonic();
            if is_ready || now >= deadline {
                return Ok(Read { fetched, round, parsed, links, requests });
            }
            self.clock.sleep_until((now + LOOK_AGAIN).min(deadline)).await;
            if let Some(again) = self.room.source.fetch_if_changed(self.id, fetched.etag.as_deref()).await.map_err(Failure::from)? {
                fetched = again;
            }
        }
    }

    /// Collects what one state of the agenda names; also tells how many requests for files were made.
    async fn round(&self, read: Read) -> Result<(Collected, usize), Halt> {
        let Read { fetched, round, parsed, links, .. } = read;
        let Parsed { format, agenda, places, faults, mut warnings, .. } = parsed;
        let Some(agenda) = agenda else {
            let faults = faults.into_iter().take(super::work::MAX_FAULTS).collect();
            return Err(Failure::new(FailureCode::AgendaInvalid, "The agenda cannot be read.").with_errors(faults).into());
        };
        let settings = self.room.settings;
        let language = settings.language_of(&agenda);
        let (etag, bytes) = (fetched.etag.clone(), fetched.bytes.clone());
        let (mut agenda, places, not_ready, origin) = compute(move || {
            let not_ready = not_ready(&agenda, format, &places, language);
            let digest = if links == 0 { Snapshot::of(&agenda).digest } else { digest_of(&bytes) };
            (agenda, places, not_ready, Origin { etag, digest })
        })
        .await;
        let mut collected = files::CollectedFiles::default();
        // Nothing is fetched for an agenda that will not become a protocol as it is.
        if faults.is_empty() && not_ready.is_empty() {
            // Each question collected and checked, each file, each document, and the finish.
            self.meter.expect(2 * agenda.questions.len() + files::count(&agenda) + settings.formats.len() + 1);
            self.take_time(&agenda).await?;
            let collecting = files::collect(&agenda, &places, &fetched.address, &round, self.room, language, self.journal, self.meter);
            collected = Box::pin(collecting).await?;
            files::note_in(&mut agenda, &collected.files);
        }
        let errors = faults.into_iter().chain(collected.errors).collect();
        let (agenda, snapshot) = compute(move || {
            let snapshot = Snapshot::of(&agenda);
            (agenda, snapshot)
        })
        .await;
        warnings.extend(collected.warnings);
        let files = collected.files;
        Ok((Collected { agenda, format, places, language, files, origin, snapshot, errors, not_ready, warnings }, collected.requests))
    }

    /// Stores the agenda as it came. A put always puts: the blob may be about to be collected as an orphan.
    async fn note(&self, fetched: &Fetched) -> Result<(), Halt> {
        let stored = self.room.store.put(fetched.bytes.clone()).await?;
        let key = step_key(&["agenda", &self.room.source.name(), self.id.as_str(), &fetched.revision()]);
        let output = json!(StoredAgenda::of(fetched, stored.blob)).to_string();
        self.meter.expect(1);
        self.journal.done(Phase::Collect, self.meter.add(1), vec![Step { name: STEP.to_owned(), key, output }]).await
    }

    /// Counts the questions; for a slow sample, one after the other over its delay. The delay is the task's own: another task takes it again.
    async fn take_time(&self, agenda: &Agenda) -> Result<(), Halt> {
        let questions = agenda.questions.len();
        let delay = agenda.sample_delay.as_deref().and_then(duration).unwrap_or_default().min(MAX_SAMPLE_DELAY);
        let is_slow = matches!(self.room.source, Source::Samples) && self.room.settings.sample_delay && !delay.is_zero();
        if !is_slow || questions == 0 {
            return self.journal.progress(Phase::Collect, self.meter.add(questions)).await;
        }
        let each = delay / u32::try_from(questions).unwrap_or(u32::MAX);
        let keys: Vec<String> = (0..questions).map(|index| step_key(&["wait", &self.journal.scope(), &index.to_string()])).collect();
        let known = self.journal.known(keys.clone()).await?;
        for (index, key) in keys.into_iter().enumerate() {
            let steps = if known.contains_key(&key) {
                Vec::new()
            } else {
                self.clock.sleep(each).await;
                vec![Step { name: format!("COLLECT/question/{}", index + 1), key, output: "null".to_owned() }]
            };
            self.journal.done(Phase::Collect, self.meter.add(1), steps).await?;
        }
        Ok(())
    }
}

/// Tells the state of an agenda whose content lies partly elsewhere from another.
#[must_use]
pub fn digest_of(bytes: &[u8]) -> String {
    format!("{BYTES}{}", hex(&Sha256::digest(bytes)))
}

/// The questions whose report is not signed, in order.
#[must_use]
pub fn not_ready(agenda: &Agenda, format: AgendaFormat, places: &[usize], language: Language) -> Vec<Fault> {
    let sitting = super::rules::Sitting::of(agenda, format);
    let waiting = sitting.in_order().into_iter().filter(|&index| !agenda.questions[index].is_ready());
    waiting
        .map(|index| {
            let question = &agenda.questions[index];
            let values = [("number", short(sitting.number(index))), ("title", short(&question.title)), ("status", short(&question.status))];
            let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let pointer = format!("/questions/{}/status", places[index]);
            Fault { code: "question-not-ready".to_owned(), pointer, detail: NOT_READY.say(language, &values) }
        })
        .collect()
}

/// A duration such as `20s`.
fn duration(text: &str) -> Option<Duration> {
    Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok()
}
