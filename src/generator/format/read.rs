//! Reads an agenda in whatever format it comes: detects the format, translates it into ours, and reads that.

use super::{
    AgendaFormat, Parsed,
    foreign::Translated,
    json_text, legistar, mapped,
    native::{self, Reading},
    oparl, references,
};
use crate::{
    base::{clock::Clock, jq},
    domain::{
        agenda::Language,
        failure::{Failure, Fault},
        ids::AgendaId,
    },
    generator::{Halt, compute, links::Links, source::Address, words::Words},
};
use bytes::Bytes;
use serde_json::Value;

/// What agendas are read with.
#[derive(Debug, Clone)]
pub struct Formats {
    /// `None`: detected.
    pub format: Option<AgendaFormat>,
    /// Makes any JSON ours.
    pub mapping: Option<jq::Program>,
    /// The language of faults; `None`: the agenda's own.
    pub language: Option<Language>,
    pub max_questions: usize,
    /// For agendas that name no zone.
    pub time_zone: Option<String>,
}

const NOT_THAT_FORMAT: Words = Words {
    ru: "Это не {format}. Проверьте адрес или agenda.format.",
    en: "This is no {format}. Check the address, or agenda.format.",
    de: "Das ist kein {format}. Prüfen Sie die Adresse oder agenda.format.",
};

impl Formats {
    /// Reads an agenda; `asked` is the id that it must have.
    ///
    /// # Errors
    /// `agenda-too-large`, and what keeps linked objects from being had; everything else is told in [`Parsed::faults`].
    pub async fn read(&self, bytes: &Bytes, asked: Option<&AgendaId>, clock: &Clock, links: &Links<'_>) -> Result<Parsed, Halt> {
        let (bytes, language) = (bytes.clone(), self.language.unwrap_or(Language::Ru));
        let value = match compute(move || json_text::parse(&bytes, language)).await {
            Ok(value) => value,
            Err(fault) => return Ok(Parsed { faults: vec![fault], ..Parsed::default() }),
        };
        let format = self.format.unwrap_or_else(|| self.detect(&value));
        let by_address = matches!(links.address, Address::Url(_));
        let asked_id = asked.map(AgendaId::as_str);
        let translated = match format {
            AgendaFormat::Native => Translated { agenda: Some(value), ..Translated::default() },
            AgendaFormat::Mapped => self.map(&value, clock).await,
            AgendaFormat::OParl if oparl::is_meeting(&value) => {
                let language = self.language.unwrap_or(Language::De);
                Box::pin(oparl::translate(value, asked_id, by_address, links, language)).await?
            }
            AgendaFormat::Legistar if legistar::is_event(&value) => {
                let language = self.language.unwrap_or(Language::En);
                let zone = self.time_zone.as_deref();
                Box::pin(legistar::translate(&value, asked_id, by_address, zone, links, language)).await?
            }
            AgendaFormat::OParl => self.not_that_format("OParl-Meeting"),
            AgendaFormat::Legistar => self.not_that_format("Legistar-Event"),
        };
        let Translated { agenda: Some(mut agenda), errors: mut faults, warnings } = translated else {
            return Ok(Parsed { format, faults: translated.errors, warnings: translated.warnings, ..Parsed::default() });
        };
        let language = self.language.unwrap_or_else(|| native::language_of(&agenda));
        native::limit(&agenda, self.max_questions)?;
        if let AgendaFormat::Native | AgendaFormat::Mapped = format {
            references::put_in(&mut agenda, links, language, &mut faults).await?;
        }
        let (reading, asked) = (Reading { asked: None, language: Some(language), max_questions: self.max_questions }, asked.cloned());
        let shown = (format != AgendaFormat::Native).then(|| agenda.clone());
        let parsed = compute(move || native::parse_value(agenda, Reading { asked: asked.as_ref(), ..reading }, format, faults)).await?;
        let mut parsed = Parsed { warnings, mapped: shown, ..parsed };
        if let Some(agenda) = &mut parsed.agenda
            && agenda.time_zone.is_none()
        {
            agenda.time_zone.clone_from(&self.time_zone);
        }
        Ok(parsed)
    }

    /// A mapping that is there is meant for what comes; else the format is told by what stands in it.
    fn detect(&self, value: &Value) -> AgendaFormat {
        if self.mapping.is_some() {
            AgendaFormat::Mapped
        } else if oparl::is_meeting(value) {
            AgendaFormat::OParl
        } else if legistar::is_event(value) {
            AgendaFormat::Legistar
        } else {
            AgendaFormat::Native
        }
    }

    async fn map(&self, value: &Value, clock: &Clock) -> Translated {
        // A format that is named without a program is refused with the configuration.
        let Some(program) = &self.mapping else { return Translated { agenda: Some(value.clone()), ..Translated::default() } };
        match mapped::map(program, clock, value, self.language.unwrap_or(Language::Ru)).await {
            Ok(agenda) => Translated { agenda: Some(agenda), ..Translated::default() },
            Err(fault) => Translated { errors: vec![fault], ..Translated::default() },
        }
    }

    fn not_that_format(&self, format: &str) -> Translated {
        let detail = NOT_THAT_FORMAT.say(self.language.unwrap_or(Language::Ru), &[("format", format)]);
        let fault = Fault { code: "format-differs".to_owned(), pointer: String::new(), detail };
        Translated { errors: vec![fault], ..Translated::default() }
    }
}

/// `agenda-too-large`, saying which limit.
pub(super) fn too_many_questions(found: usize, limit: usize) -> Failure {
    let detail = format!("generator.max_questions is {limit}, the agenda has {found} questions");
    Failure::new(crate::domain::failure::FailureCode::AgendaTooLarge, "The agenda has too many questions.").with_detail(detail)
}
