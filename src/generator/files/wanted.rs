//! The files that an agenda refers to, and the keys under which they are remembered.

use crate::{
    domain::agenda::{Agenda, File},
    generator::{
        snapshot::{canonical, step_key},
        source::Address,
    },
};
use serde_json::json;

/// Which file of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    Report,
    Attachment(usize),
}

/// A file that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Index of its question in the model.
    pub question: usize,
    pub slot: Slot,
    pub file: File,
    pub pointer: String,
    pub step: String,
    pub key: String,
}

/// How many files an agenda refers to.
#[must_use]
pub fn count(agenda: &Agenda) -> usize {
    agenda.questions.iter().map(|question| usize::from(question.report.is_some()) + question.attachments.len()).sum()
}

/// All of them; `source` names where an agenda at `address` is from.
pub(super) fn wanted(agenda: &Agenda, places: &[usize], source: &str, address: &Address) -> Vec<Wanted> {
    let mut all = Vec::new();
    for (index, question) in agenda.questions.iter().enumerate() {
        let report = question.report.iter().map(|file| (Slot::Report, file));
        let attachments = question.attachments.iter().enumerate().map(|(at, file)| (Slot::Attachment(at), file));
        for (slot, file) in report.chain(attachments) {
            let (pointer, end) = match slot {
                Slot::Report => (format!("/questions/{}/report", places[index]), "report".to_owned()),
                Slot::Attachment(at) => (format!("/questions/{}/attachments/{at}", places[index]), format!("attachment/{}", at + 1)),
            };
            let identity = match (&file.base64, &file.sha256) {
                (Some(content), _) => step_key(&[content]),
                (None, Some(sha256)) => sha256.to_ascii_lowercase(),
                (None, None) => step_key(&[&canonical(json!(question))]),
            };
            let key = step_key(&[
                "file",
                source,
                &address.resolve(file.href.as_deref().unwrap_or("")),
                &identity,
                &json!(file.bytes).to_string(),
            ]);
            let step = format!("COLLECT/question/{}/{end}", index + 1);
            all.push(Wanted { question: index, slot, file: file.clone(), pointer, step, key });
        }
    }
    all
}

impl Wanted {
    /// Whether only its holder knows if it has changed.
    pub fn may_change(&self) -> bool {
        self.file.base64.is_none() && self.file.sha256.is_none()
    }

    /// The name to print: the given one, else the end of the address.
    pub fn name(&self) -> String {
        let from_address = || {
            let path = self.file.href.as_deref()?.split(['?', '#']).next()?;
            let end = path.rsplit('/').next().filter(|end| !end.is_empty())?;
            Some(percent_encoding::percent_decode_str(end).decode_utf8_lossy().into_owned())
        };
        self.file.name.clone().filter(|name| !name.trim().is_empty()).or_else(from_address).unwrap_or_else(|| "file".to_owned())
    }
}
