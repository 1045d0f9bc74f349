//! The annexes: the attendance list where it is long, the files that travel inside the document, and the table that names them all.

use super::{
    build::Context,
    model::{Annex, AnnexPage, Attachment, Block, Column, Role, Table, Width},
    text::line,
};

/// From this many names on, the attendance is an annex.
pub(super) const LIST_IN_ANNEX_FROM: usize = 15;

/// A file with its number among the annexes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbered<'a> {
    pub number: usize,
    pub annex: &'a Annex,
}

/// Numbers the files by the order of their questions, reports before papers, the snapshot last; `first` is free.
pub(super) fn numbered<'a>(context: &Context<'_>, annexes: &'a [Annex], first: usize) -> Vec<Numbered<'a>> {
    let place = |annex: &Annex| {
        let question = annex.question.as_deref().and_then(|id| context.questions.iter().position(|question| question.id == id));
        (annex.role == Role::Snapshot, question.unwrap_or(usize::MAX), annex.role == Role::Attachment)
    };
    let mut sorted: Vec<&Annex> = annexes.iter().collect();
    sorted.sort_by_key(|annex| place(annex));
    sorted.into_iter().enumerate().map(|(at, annex)| Numbered { number: first + at, annex }).collect()
}

pub(super) fn of_question<'a>(annexes: &[Numbered<'a>], question: &str, role: Role) -> Vec<Numbered<'a>> {
    annexes.iter().filter(|numbered| numbered.annex.role == role && numbered.annex.question.as_deref() == Some(question)).copied().collect()
}

/// The mark about annexes that stands before the signatures (requisite 19 of the standard).
pub(super) fn mark(context: &Context<'_>, attendance: Option<usize>, files: &[Numbered<'_>]) -> Option<Block> {
    let labels = context.words.labels();
    let mut lines = Vec::new();
    if let Some(number) = attendance {
        lines.push(format!("{}\u{a0}— {}", context.words.number(&number.to_string()), labels.attendance_list.to_lowercase()));
    }
    if let (Some(first), Some(last)) = (files.first(), files.last()) {
        lines.push(context.words.files_enclosed(first.number, last.number));
    }
    (!lines.is_empty()).then(|| Block::Field { label: format!("{}:", labels.annexes), text: lines.join("; ") + "." })
}

/// The table of all files with name, size and digest.
pub(super) fn file_list(context: &Context<'_>, files: &[Numbered<'_>]) -> Option<AnnexPage> {
    let labels = context.words.labels();
    if files.is_empty() {
        return None;
    }
    let rows = files.iter().map(|Numbered { number, annex }| {
        let question = annex.question.as_deref().and_then(|id| context.number_of(id)).unwrap_or_else(|| "—".to_owned());
        vec![
            number.to_string(),
            question,
            format!("{}: {}", super::text::capitalized(context.words.file_role(annex.role)), line(&annex.name)),
            context.words.bytes(annex.bytes),
            annex.sha256.clone(),
        ]
    });
    let column = |title: &str, width| Column { title: title.to_owned(), width };
    let table = Table {
        caption: None,
        columns: vec![
            column(labels.annex_number, Width::Narrow),
            column(labels.question, Width::Narrow),
            column(labels.file, Width::Wide),
            column(labels.size, Width::Medium),
            column("SHA-256", Width::Digest),
        ],
        rows: rows.collect(),
    };
    let explained = Block::Paragraph { text: context.words.files_explained().to_owned() };
    Some(AnnexPage { number: None, title: labels.file_list.to_owned(), blocks: vec![explained, Block::Table(table)] })
}

/// How the files travel inside the document.
pub(super) fn attachments(context: &Context<'_>, files: &[Numbered<'_>]) -> Vec<Attachment> {
    files
        .iter()
        .map(|Numbered { number, annex }| {
            let role = context.words.file_role(annex.role);
            let of = annex
                .question
                .as_deref()
                .and_then(|id| context.number_of(id))
                .map_or_else(String::new, |number| format!(", {} {number}", context.words.labels().question.to_lowercase()));
            Attachment {
                path: annex.path.clone(),
                name: format!("{number:03}-{}", safe_name(&annex.name)),
                media_type: media_type(&annex.media_type),
                description: format!("{}: {role}{of}: {}", context.words.annex(*number), line(&annex.name)),
                role: annex.role,
                bytes: annex.bytes,
                sha256: annex.sha256.clone(),
            }
        })
        .collect()
}

/// A name that every system can store: letters, digits, `.`, `-`, `_`; no path, no leading dot, at most 60 characters, the extension kept.
fn safe_name(name: &str) -> String {
    let name: String = name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .collect();
    let name = name.trim_matches(['.', '_']);
    let (stem, extension) = name.rsplit_once('.').filter(|(_, extension)| extension.chars().count() <= 8).unwrap_or((name, ""));
    let stem: String = stem.chars().take(50).collect();
    match (stem.is_empty(), extension.is_empty()) {
        (true, true) => "file".to_owned(),
        (true, false) => format!("file.{extension}"),
        (false, true) => stem,
        (false, false) => format!("{stem}.{extension}"),
    }
}

/// A media type that a PDF may carry, without parameters; rubbish becomes the type of unknown bytes.
fn media_type(given: &str) -> String {
    let bare = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_part = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    match bare.split_once('/') {
        Some((kind, sub)) if is_part(kind) && is_part(sub) => bare,
        _ => "application/octet-stream".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_inside_the_document_are_harmless() {
        for (given, want) in [
            ("Доклад о бюджете.pdf", "Доклад_о_бюджете.pdf"),
            ("../../etc/passwd", "passwd"),
            ("..", "file"),
            ("a\u{202e}fdp.exe", "a_fdp.exe"),
            ("C:\\x\\y.docx", "y.docx"),
            (".bashrc", "bashrc"),
            ("", "file"),
        ] {
            assert_eq!(safe_name(given), want, "{given:?}");
        }
        assert_eq!(safe_name(&format!("{}.pdf", "я".repeat(300))).chars().count(), 54);
    }

    #[test]
    fn rubbish_is_no_media_type() {
        assert_eq!(media_type("Application/PDF; charset=x"), "application/pdf");
        for rubbish in ["", "pdf", "a/b/c", "a/ b", "#/x", "application/"] {
            assert_eq!(media_type(rubbish), "application/octet-stream", "{rubbish}");
        }
    }
}
