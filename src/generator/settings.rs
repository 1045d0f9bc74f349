//! What the configuration says about generating.

use super::{
    compute,
    format::{
        Parsed,
        native::{self, Reading},
    },
};
use crate::{
    base::config::Config,
    domain::{
        agenda::{Agenda, Language},
        failure::Failure,
        ids::AgendaId,
        protocol::Format,
    },
};
use bytes::Bytes;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub formats: Vec<Format>,
    /// `None`: the agenda's own, else Russian.
    pub language: Option<Language>,
    pub max_questions: usize,
    pub max_report_bytes: u64,
    /// How long an agenda that is not ready is looked at again.
    pub ready_grace: Duration,
    /// For agendas that name no zone.
    pub time_zone: Option<String>,
    /// Files on their way at once, in one task.
    pub concurrency: usize,
    /// Whether a sample's `sampleDelay` is waited for.
    pub sample_delay: bool,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            formats: config.generator.formats.clone(),
            language: config.generator.language,
            max_questions: config.generator.max_questions,
            max_report_bytes: config.generator.max_report_size.as_u64(),
            ready_grace: config.agenda.ready_grace,
            time_zone: config.agenda.timezone.clone(),
            concurrency: config.agenda.max_per_host.clamp(1, 64),
            sample_delay: true,
        }
    }
}

impl Settings {
    /// Reads an agenda's bytes; `asked` is the id that must stand in it.
    ///
    /// # Errors
    /// `agenda-too-large`; everything else is told in [`Parsed::faults`].
    pub async fn read(&self, bytes: &Bytes, asked: Option<&AgendaId>) -> Result<Parsed, Failure> {
        let (settings, bytes, asked) = (self.clone(), bytes.clone(), asked.cloned());
        compute(move || settings.read_now(&bytes, asked.as_ref())).await
    }

    fn read_now(&self, bytes: &[u8], asked: Option<&AgendaId>) -> Result<Parsed, Failure> {
        let mut parsed = native::parse(bytes, Reading { asked, language: self.language, max_questions: self.max_questions })?;
        if let Some(agenda) = &mut parsed.agenda
            && agenda.time_zone.is_none()
        {
            agenda.time_zone.clone_from(&self.time_zone);
        }
        Ok(parsed)
    }

    /// The language in which an agenda is printed and its faults are told.
    #[must_use]
    pub fn language_of(&self, agenda: &Agenda) -> Language {
        self.language.or(agenda.language).unwrap_or(Language::Ru)
    }

    /// For a look without a task: nobody waits for anything.
    #[must_use]
    pub fn impatient(&self) -> Self {
        Self { ready_grace: Duration::ZERO, sample_delay: false, ..self.clone() }
    }
}
