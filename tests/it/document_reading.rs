//! Reads a document's text back out of each format, and out of the model, so that they can be compared letter by letter: [`squeezed`], in reading order, with the
//! numbers of lists, without what belongs to pages alone (their numbers, repeated table heads, the leaders and page numbers of the contents).

use crate::document_support::{run, squeezed};
use protocol_bridge::generator::document::{DocumentModel, model::Block};
use roxmltree::{Document, Node, ParsingOptions};
use std::{collections::HashMap, fmt::Write as _, fs, io::Read as _, path::Path, process::Command};

/// What every format must say.
pub fn of_model(model: &DocumentModel) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut say = |text: &str| texts.push(text.to_owned());
    let head = &model.head;
    for text in [&head.organization, &head.kind, &head.subject, &head.meeting, &head.date, &head.number, &head.place] {
        say(text);
    }
    model.opening.iter().for_each(|block| of_block(block, &mut say));
    say(&model.contents);
    for section in &model.sections {
        say(&format!("{}. {} {}", section.number, section.title, section.rapporteur.as_deref().unwrap_or_default()));
    }
    for section in &model.sections {
        say(&format!("{}. {}", section.number, section.title));
        section.blocks.iter().for_each(|block| of_block(block, &mut say));
    }
    model.closing.iter().for_each(|block| of_block(block, &mut say));
    for signature in &model.signatures {
        say(&signature.role);
        say(&signature.name);
    }
    for annex in &model.annexes {
        say(annex.number.as_deref().unwrap_or_default());
        say(&annex.title);
        annex.blocks.iter().for_each(|block| of_block(block, &mut say));
    }
    squeezed(&texts.concat())
}

fn of_block(block: &Block, say: &mut impl FnMut(&str)) {
    match block {
        Block::Caption { text } | Block::Paragraph { text } | Block::Note { text } => say(text),
        Block::Field { label, text } => {
            say(label);
            say(text);
        }
        Block::Point { number, text, details } => {
            say(number);
            say(text);
            for detail in details {
                say(detail);
            }
        }
        Block::List { items } => {
            for (at, item) in items.iter().enumerate() {
                say(&format!("{}. {item}", at + 1));
            }
        }
        Block::Table(table) => {
            say(table.caption.as_deref().unwrap_or_default());
            for text in table.columns.iter().map(|column| &column.title).chain(table.rows.iter().flatten()) {
                say(text);
            }
        }
    }
}

/// The PDF's text, by poppler.
pub fn of_pdf(pdf: &Path, model: &DocumentModel) -> String {
    let text = run("pdftotext", &["-raw", "-enc", "UTF-8", pdf.to_str().unwrap(), "-"]);
    let sections = model.sections.iter().flat_map(|section| &section.blocks);
    let blocks = model.opening.iter().chain(sections).chain(model.annexes.iter().flat_map(|annex| &annex.blocks));
    let heads: Vec<String> = blocks
        .filter_map(|block| match block {
            Block::Table(table) => Some(squeezed(&table.columns.iter().map(|column| column.title.as_str()).collect::<String>())),
            _ => None,
        })
        .collect();
    let mut out = String::new();
    for (at, page) in text.split('\u{c}').enumerate() {
        let page = if at == 0 { page } else { page.split_once('\n').map_or("", |(_number, rest)| rest) };
        let page = squeezed(&without_leaders(page));
        let repeated = heads.iter().find(|head| at > 0 && page.starts_with(head.as_str()));
        out.push_str(&page[repeated.map_or(0, String::len)..]);
    }
    without_directions(&out)
}

/// A page without the « . . . 12» of the contents; poppler may put the number on a line of its own.
fn without_leaders(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut is_open = false;
    for line in page.lines().map(str::trim_end) {
        let dotted = line.trim_end_matches(|c: char| c.is_ascii_digit());
        if std::mem::take(&mut is_open) && dotted.is_empty() {
            continue;
        }
        let title = match dotted.strip_suffix(" . ") {
            Some(title) if dotted.len() < line.len() => title,
            _ if line.ends_with(" . . .") => {
                is_open = true;
                line
            }
            _ => {
                out.push_str(line);
                continue;
            }
        };
        out.push_str(title.trim_end_matches(" ."));
    }
    out
}

/// Poppler writes marks where the direction turns.
fn without_directions(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\u{202a}'..='\u{202e}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}')).collect()
}

/// The page's text, as its elements hold it.
pub fn of_html(html: &str) -> String {
    let document = parse(html);
    let body = document.descendants().find(|node| node.has_tag_name("body")).expect("a body");
    let mut out = String::new();
    of_element(body, &mut out);
    squeezed(&out)
}

fn of_element(node: Node<'_, '_>, out: &mut String) {
    if node.has_tag_name("li") && !node.ancestors().any(|above| above.has_tag_name("nav")) {
        let before = node.prev_siblings().filter(|sibling| sibling.has_tag_name("li")).count();
        write!(out, "{before}.").unwrap();
    }
    out.push_str(node.text().filter(|_| node.is_text()).unwrap_or_default());
    node.children().for_each(|child| of_element(child, out));
}

/// The main part's text, as its runs hold it.
pub fn of_docx(docx: &Path) -> String {
    let text = part(docx, "word/document.xml");
    let document = parse(&text);
    let mut numbered: HashMap<String, usize> = HashMap::new();
    let mut out = String::new();
    for node in document.descendants() {
        match node.tag_name().name() {
            "numId" => {
                let number = numbered.entry(node.attributes().next().expect("a number").value().to_owned()).or_default();
                *number += 1;
                write!(out, "{number}.").unwrap();
            }
            "t" => out.push_str(node.text().unwrap_or_default()),
            "softHyphen" => out.push('\u{ad}'),
            "noBreakHyphen" => out.push('\u{2011}'),
            _ => {}
        }
    }
    squeezed(&out)
}

/// One part of a package.
pub fn part(docx: &Path, name: &str) -> String {
    let mut package = zip::ZipArchive::new(fs::File::open(docx).unwrap()).expect("a ZIP");
    let mut text = String::new();
    package.by_name(name).unwrap_or_else(|error| panic!("{name}: {error}")).read_to_string(&mut text).unwrap();
    text
}

pub fn parse(xml: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(xml, options).unwrap_or_else(|error| panic!("{error}:\n{xml}"))
}

/// Converts files with LibreOffice; the results lie beside each other in `out`.
pub fn convert(files: &[&Path], to: &str, out: &Path) {
    // A profile of its own: two of them at once on one profile hand their files to the first and are gone.
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("soffice")
        .arg(format!("-env:UserInstallation=file://{}", profile.path().display()))
        .args(["--headless", "--norestore", "--convert-to", to, "--outdir"])
        .arg(out)
        .args(files)
        .output()
        .unwrap_or_else(|error| panic!("soffice is needed by this test (scripts/tools.sh names its package): {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The file as LibreOffice reads it.
pub fn of_text_file(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    without_directions(&squeezed(text.trim_start_matches('\u{feff}')))
}
