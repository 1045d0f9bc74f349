//! PDF, DOCX and HTML of a protocol say the same, letter by letter, and a word processor reads the same out of the DOCX.

use crate::{
    document_reading::{convert, of_docx, of_html, of_model, of_pdf, of_text_file},
    document_support::{draft, make, sample},
};
use protocol_bridge::domain::{agenda::Language, protocol::Format};
use std::{fs, path::PathBuf};

const LANGUAGES: [Language; 3] = [Language::Ru, Language::En, Language::De];

#[test]
fn every_sample_says_the_same_in_every_format_and_language() {
    for agenda_id in ["council-2026-11", "slow-council", "contradictory-council", "allotments-2026", "unsigned-council"] {
        for language in LANGUAGES {
            let made = make(&sample(agenda_id), language);
            let wanted = of_model(&made.model);
            alike(&of_pdf(&made.pdf, &made.model), &wanted, &format!("{agenda_id} {language:?} pdf"));
            let html = fs::read_to_string(made.render(Format::Html)).unwrap();
            alike(&of_html(&html), &wanted, &format!("{agenda_id} {language:?} html"));
            alike(&of_docx(&made.render(Format::Docx)), &wanted, &format!("{agenda_id} {language:?} docx"));
        }
    }
}

#[test]
fn a_large_protocol_says_the_same_in_every_format() {
    let made = make(&sample("large-council"), Language::Ru);
    let wanted = of_model(&made.model);
    alike(&of_pdf(&made.pdf, &made.model), &wanted, "pdf");
    alike(&of_html(&fs::read_to_string(made.render(Format::Html)).unwrap()), &wanted, "html");
    alike(&of_docx(&made.render(Format::Docx)), &wanted, "docx");
}

#[test]
fn a_word_processor_reads_the_same() {
    let drafts: Vec<_> = ["council-2026-11", "allotments-2026", "large-council"]
        .into_iter()
        .zip(LANGUAGES)
        .map(|(id, language)| draft(&sample(id), language))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = drafts
        .iter()
        .enumerate()
        .map(|(at, draft)| {
            let file = folder.path().join(format!("{at}.docx"));
            fs::copy(draft.render(Format::Docx), &file).unwrap();
            file
        })
        .collect();
    convert(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>(), "txt:Text (encoded):UTF8", folder.path());
    for (at, draft) in drafts.iter().enumerate() {
        alike(&of_text_file(&folder.path().join(format!("{at}.txt"))), &of_model(&draft.model), &format!("{at}"));
    }
}

/// Shows where two long texts part.
#[track_caller]
pub fn alike(found: &str, wanted: &str, what: &str) {
    if found == wanted {
        return;
    }
    let common = found.chars().zip(wanted.chars()).take_while(|(found, wanted)| found == wanted).count();
    let around = |text: &str| text.chars().skip(common.saturating_sub(40)).take(120).collect::<String>();
    panic!("{what}: after {common} characters\n   {}\nis not\n   {}", around(found), around(wanted));
}
