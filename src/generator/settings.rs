//! What the configuration says about generating.

use super::format::{AgendaFormat, Formats};
use crate::{
    base::{config::Config, jq},
    domain::{
        agenda::{Agenda, Language},
        protocol::Format,
    },
};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub formats: Vec<Format>,
    /// In which agendas come; `None`: detected.
    pub format: Option<AgendaFormat>,
    /// Makes any JSON our own format.
    pub mapping: Option<jq::Program>,
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
            format: AgendaFormat::ALL.into_iter().find(|format| format.as_str() == config.agenda.format),
            // That it compiles was seen to with the configuration.
            mapping: config.agenda.mapping.as_deref().and_then(|program| jq::Program::compile(program).ok()),
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
    /// How agendas are read.
    #[must_use]
    pub fn formats(&self) -> Formats {
        Formats {
            format: self.format,
            mapping: self.mapping.clone(),
            language: self.language,
            max_questions: self.max_questions,
            time_zone: self.time_zone.clone(),
        }
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
