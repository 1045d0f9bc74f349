//! Makes a PDF of a document model: PDF/A-3a and PDF/UA-1 at once, the same bytes for the same model.
//!
//! The compiler sees a world of our own: the template, the model's JSON and the attached files, nothing else; packages are refused and the date is fixed.
//! All content is data. A warning is an error: with these fonts and this template there is nothing to be warned about.
//! The compiler keeps results in caches that are global to the process; they are emptied after every document, whether it came out or not.

use super::document::{
    fonts::FONTS,
    model::{Attachment, Block, DocumentModel, Role, Section, section_label},
};
use serde_json::{Value, json};
use std::{collections::HashMap, fmt::Write as _, sync::LazyLock};
use typst::{
    Library, LibraryExt as _, World,
    diag::{FileError, FileResult, SourceDiagnostic},
    foundations::{Bytes, Datetime, Duration, Smart},
    introspection::Introspector as _,
    syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot},
    text::{Font, FontBook},
    utils::LazyHash,
};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

const TEMPLATE: &str = include_str!("document/template.typ");

/// Words longer than this may be broken anywhere: the line has room for about ninety letters, the narrowest cells of free text for this many.
const LONGEST_WORD: usize = 28;

/// A typeset document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typeset {
    pub pdf: Vec<u8>,
    pub pages: u32,
}

/// Sets the model. `files` are the contents of its attachments, in their order.
///
/// # Errors
/// What the compiler said, errors and warnings alike; or a question that does not appear exactly once and in its place.
pub fn typeset(model: &DocumentModel, files: Vec<Vec<u8>>) -> Result<Typeset, String> {
    // Emptied when it goes out of scope: on success, on error and on a panic.
    let _caches = EmptyCaches;
    if files.len() != model.attachments.len() {
        return Err(format!("{} files were handed in for {} attachments", files.len(), model.attachments.len()));
    }
    let world = JobWorld::new(model, files)?;
    let compiled = typst::compile::<PagedDocument>(&world);
    let document = compiled.output.map_err(|errors| described(&world, &errors))?;
    if !compiled.warnings.is_empty() {
        return Err(described(&world, &compiled.warnings));
    }
    check_order(model, &document)?;
    let options = PdfOptions {
        ident: Smart::Custom(model.identity.clone()),
        creator: Smart::Custom(Some("protocol-bridge".to_owned())),
        timestamp: Some(timestamp(&model.timestamp)?),
        page_ranges: None,
        standards: PdfStandards::new(&[PdfStandard::A_3a, PdfStandard::Ua_1]).map_err(|error| error.message().to_string())?,
        tagged: true,
        pretty: false,
    };
    let pdf = typst_pdf::pdf(&document, &options).map_err(|errors| described(&world, &errors))?;
    Ok(Typeset { pdf, pages: u32::try_from(document.pages().len()).unwrap_or(u32::MAX) })
}

/// Empties the compiler's caches when dropped.
struct EmptyCaches;

impl Drop for EmptyCaches {
    fn drop(&mut self) {
        comemo::evict(0);
    }
}

/// Every question's label exactly once, in the order of the model.
fn check_order(model: &DocumentModel, document: &PagedDocument) -> Result<(), String> {
    let mut found = Vec::with_capacity(model.sections.len());
    for element in document.introspector().query_labelled() {
        let label = element.label().map(|label| label.resolve().to_string()).unwrap_or_default();
        if label.starts_with("q-") {
            found.push(label);
        }
    }
    let wanted: Vec<String> = (1..=model.sections.len()).map(section_label).collect();
    if found == wanted {
        return Ok(());
    }
    let lost: Vec<&String> = wanted.iter().filter(|label| found.iter().filter(|other| other == label).count() != 1).collect();
    Err(format!("the questions do not appear exactly once and in order: {lost:?}"))
}

fn timestamp(text: &str) -> Result<Timestamp, String> {
    let time: crate::domain::time::Timestamp = text.parse().map_err(|error| format!("the model's timestamp: {error}"))?;
    let time = jiff::tz::Offset::UTC.to_datetime(time.to_jiff());
    let part = |part: i8| part.unsigned_abs();
    Datetime::from_ymd_hms(
        i32::from(time.year()),
        part(time.month()),
        part(time.day()),
        part(time.hour()),
        part(time.minute()),
        part(time.second()),
    )
    .map(Timestamp::new_utc)
    .ok_or_else(|| format!("the model's timestamp {text} is no date"))
}

/// The messages with the lines of the template that they are about.
fn described(world: &JobWorld, diagnostics: &[SourceDiagnostic]) -> String {
    let one = |diagnostic: &SourceDiagnostic| {
        let mut text = diagnostic.message.to_string();
        if let Some(line) = world.line_of(diagnostic) {
            let _ = write!(text, " (line {line} of the template)");
        }
        for hint in &diagnostic.hints {
            let _ = write!(text, "; {}", hint.v);
        }
        text
    };
    diagnostics.iter().take(5).map(one).collect::<Vec<_>>().join("\n")
}

/// Everything that one document can see.
struct JobWorld {
    files: HashMap<FileId, Bytes>,
    main: FileId,
    source: Source,
}

/// One for all documents: a different one for each would make the compiler forget what it knows.
static LIBRARY: LazyLock<LazyHash<Library>> = LazyLock::new(|| LazyHash::new(Library::default()));

impl JobWorld {
    fn new(model: &DocumentModel, files: Vec<Vec<u8>>) -> Result<Self, String> {
        // Ids of files are kept by the compiler for ever and there are 65,535: the names come from our own counter, never from content.
        let mut served = HashMap::new();
        served.insert(id("/model.json")?, Bytes::new(head(model).to_string().into_bytes()));
        for (at, section) in model.sections.iter().enumerate() {
            served.insert(id(&format!("/q/{:04}.json", at + 1))?, Bytes::new(section_data(section).to_string().into_bytes()));
        }
        for (at, file) in files.into_iter().enumerate() {
            served.insert(id(&format!("/files/{:04}", at + 1))?, Bytes::new(file));
        }
        let main = id("/template.typ")?;
        Ok(Self { files: served, main, source: Source::new(main, TEMPLATE.to_owned()) })
    }

    fn line_of(&self, diagnostic: &SourceDiagnostic) -> Option<usize> {
        use typst::WorldExt as _;
        let range = self.range(diagnostic.span)?;
        (diagnostic.span.id()? == self.main).then(|| self.source.text()[..range.start].lines().count().max(1))
    }
}

fn id(path: &str) -> Result<FileId, String> {
    let path = VirtualPath::new(path).map_err(|_| format!("{path} is no path"))?;
    Ok(RootedPath::new(VirtualRoot::Project, path).intern())
}

impl World for JobWorld {
    fn library(&self) -> &LazyHash<Library> {
        &LIBRARY
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &FONTS.book
    }

    fn main(&self) -> FileId {
        self.main
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.main { Ok(self.source.clone()) } else { Err(FileError::AccessDenied) }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        self.files.get(&id).cloned().ok_or(FileError::AccessDenied)
    }

    fn font(&self, index: usize) -> Option<Font> {
        FONTS.faces.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}

/// The model without its sections, which are files of their own so that an unchanged one is not set again.
fn head(model: &DocumentModel) -> Value {
    let mut head = model.clone();
    let sections = std::mem::take(&mut head.sections).len();
    let attachments = std::mem::take(&mut head.attachments);
    head.head.organization = breakable(&head.head.organization);
    for text in [&mut head.head.subject, &mut head.head.meeting, &mut head.head.date, &mut head.head.number, &mut head.head.place] {
        *text = breakable(text);
    }
    head.opening.iter_mut().chain(&mut head.closing).for_each(break_long_words);
    for signature in &mut head.signatures {
        signature.role = breakable(&signature.role);
        signature.name = breakable(&signature.name);
    }
    head.annexes.iter_mut().flat_map(|annex| &mut annex.blocks).for_each(break_long_words);
    let mut value = serde_json::to_value(&head).unwrap_or(Value::Null);
    value["sectionCount"] = json!(sections);
    value["attachments"] = attachments.iter().map(attachment).collect();
    value
}

fn attachment(attachment: &Attachment) -> Value {
    // PDF/A-3 wants to know what a file is to the document: the snapshot is what it was made from, a report what it reports on.
    let relationship = match attachment.role {
        Role::Snapshot => "source",
        Role::Report | Role::Attachment => "supplement",
    };
    json!({
        "name": attachment.name,
        "mediaType": attachment.media_type,
        "description": attachment.description,
        "relationship": relationship,
    })
}

fn section_data(section: &Section) -> Value {
    let mut section = section.clone();
    section.number = breakable(&section.number);
    section.title = breakable(&section.title);
    section.rapporteur = section.rapporteur.as_deref().map(breakable);
    section.blocks.iter_mut().for_each(break_long_words);
    serde_json::to_value(&section).unwrap_or(Value::Null)
}

fn break_long_words(block: &mut Block) {
    match block {
        Block::Caption { text } | Block::Paragraph { text } | Block::Note { text } => *text = breakable(text),
        Block::Field { label, text } => {
            *label = breakable(label);
            *text = breakable(text);
        }
        Block::Point { number, text, details } => {
            for text in [number, text].into_iter().chain(details) {
                *text = breakable(text);
            }
        }
        Block::List { items } => items.iter_mut().for_each(|item| *item = breakable(item)),
        Block::Table(table) => table.rows.iter_mut().flatten().for_each(|cell| *cell = breakable(cell)),
    }
}

/// Puts a zero-width space between the letters of words that are too long for a line; the template breaks there without printing anything.
fn breakable(text: &str) -> String {
    if text.split(char::is_whitespace).all(|word| word.chars().nth(LONGEST_WORD).is_none()) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() * 2);
    for word in text.split_inclusive(char::is_whitespace) {
        let is_long = word.trim_end().chars().nth(LONGEST_WORD).is_some();
        for (at, character) in word.chars().enumerate() {
            // A combining mark stays with its letter.
            if is_long && at > 0 && !character.is_whitespace() && !is_combining(character) {
                out.push('\u{200b}');
            }
            out.push(character);
        }
    }
    out
}

fn is_combining(character: char) -> bool {
    unicode_normalization::char::is_combining_mark(character) || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_may_be_broken_between_letters_only() {
        let word = "щ".repeat(LONGEST_WORD + 1);
        let broken = breakable(&format!("а {word}\u{301} б"));
        assert_eq!(broken.replace('\u{200b}', ""), format!("а {word}\u{301} б"));
        assert!(broken.starts_with("а щ\u{200b}щ") && broken.ends_with("щ\u{301} б"), "{broken:?}");
        assert_eq!(breakable("обычный текст"), "обычный текст");
    }

    /// The compiler's caches belong to the version of comemo that it was built with: emptying another version's would do nothing, silently.
    #[test]
    fn memory_does_not_grow_with_every_document() {
        let agenda = include_str!("../../samples/agendas/allotments-2026.json");
        let agenda: crate::domain::agenda::Agenda = serde_json::from_str(agenda).expect("a bundled sample");
        let model = DocumentModel::build(&agenda, "1", crate::domain::agenda::Language::En, &[]);
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
            statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number of pages")
        };
        let set = |from: usize, to: usize| {
            for at in from..to {
                let mut model = model.clone();
                model.sections[0].title = format!("Item of document {at}");
                assert!(typeset(&model, Vec::new()).is_ok());
                // And one that fails: no font has this.
                model.sections[0].title = format!("漢 {at}");
                assert!(typeset(&model, Vec::new()).is_err());
            }
        };
        set(0, 20);
        let early = resident();
        set(20, 80);
        let late = resident();
        assert!(late <= early + early / 5, "resident pages grew from {early} to {late}");
    }
}
