//! The parts of the package, in the order in which they are packed.

use super::{
    runs::Runs,
    widths::{TEXT_WIDTH, column_widths},
};
use crate::{
    domain::{agenda::Language, time::Timestamp},
    generator::document::{
        model::{Block, DocumentModel, SHORT_TABLE, Width},
        xml::only_legal,
    },
};
use askama::Template;
use std::cell::Cell;

macro_rules! part {
    ($name:literal) => {
        include_str!(concat!("../../../../templates/document/docx/", $name))
    };
}

#[derive(Template)]
#[template(path = "document/docx/document.xml")]
struct Document<'a> {
    model: &'a DocumentModel,
    /// Each list is numbered from 1 by a numbering of its own.
    lists: Cell<usize>,
}

impl Document<'_> {
    fn next_list(&self) -> usize {
        self.lists.update(|lists| lists + 1);
        self.lists.get()
    }
}

#[derive(Template)]
#[template(path = "document/docx/styles.xml")]
struct Styles {
    locale: &'static str,
}

#[derive(Template)]
#[template(path = "document/docx/settings.xml")]
struct Settings {
    locale: &'static str,
}

#[derive(Template)]
#[template(path = "document/docx/numbering.xml")]
struct Numbering {
    lists: usize,
}

#[derive(Template)]
#[template(path = "document/docx/core.xml")]
struct Core<'a> {
    model: &'a DocumentModel,
    locale: &'static str,
    /// To the second: more than that, readers refuse.
    time: String,
}

/// Name and content of every part. The list of their types comes first, as some readers want it.
pub(super) fn all(model: &DocumentModel) -> Result<Vec<(&'static str, String)>, askama::Error> {
    let locale = locale(model.language);
    let document = Document { model, lists: Cell::new(0) };
    let text = document.render()?;
    let lists = document.lists.get();
    Ok(vec![
        ("[Content_Types].xml", part!("content-types.xml").to_owned()),
        ("_rels/.rels", part!("package-relations.xml").to_owned()),
        ("docProps/app.xml", part!("app.xml").to_owned()),
        ("docProps/core.xml", only_legal(Core { model, locale, time: time(&model.timestamp) }.render()?)),
        ("word/document.xml", only_legal(text)),
        ("word/_rels/document.xml.rels", part!("document-relations.xml").to_owned()),
        ("word/styles.xml", Styles { locale }.render()?),
        ("word/settings.xml", Settings { locale }.render()?),
        ("word/numbering.xml", Numbering { lists }.render()?),
        ("word/header1.xml", part!("header.xml").to_owned()),
    ])
}

const fn locale(language: Language) -> &'static str {
    match language {
        Language::Ru => "ru-RU",
        Language::En => "en-GB",
        Language::De => "de-DE",
    }
}

fn time(timestamp: &str) -> String {
    let time: Timestamp = timestamp.parse().unwrap_or_default();
    format!("{}Z", jiff::tz::Offset::UTC.to_datetime(time.to_jiff()).strftime("%Y-%m-%dT%H:%M:%S"))
}
