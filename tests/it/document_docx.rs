//! The DOCX of a protocol: built so that Word takes it without repair, laid out to the standard in LibreOffice, and always the same bytes.

use crate::{
    document_pdf::laid_out_to_the_standard,
    document_reading::{convert, parse, part},
    document_support::{Draft, draft, sample, sha256},
};
use protocol_bridge::{
    domain::{
        agenda::{Agenda, Language},
        protocol::Format,
    },
    generator::document::{
        DocumentModel, docx,
        model::{AnnexPage, Block, Column, Table, Width},
    },
};
use roxmltree::Node;
use std::{fs, path::Path};

const W: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.has_tag_name((W, name))
}

fn value<'a>(node: Node<'a, '_>, child: &str) -> Option<&'a str> {
    node.descendants().find(|node| is(*node, child))?.attribute((W, "val"))
}

/// What Word repairs, or refuses: the rules of ISO/IEC 29500 that generated files break.
fn well_built(docx: &Path) {
    let mut package = zip::ZipArchive::new(fs::File::open(docx).unwrap()).unwrap();
    let names: Vec<String> = (0..package.len()).map(|at| package.by_index(at).unwrap().name().unwrap().into_owned()).collect();
    assert_eq!(names[0], "[Content_Types].xml");
    for name in &names {
        parse(&part(docx, name));
    }
    let types = part(docx, "[Content_Types].xml");
    for name in names.iter().filter(|name| !name.contains("_rels/") && *name != "[Content_Types].xml") {
        assert!(types.contains(&format!("PartName=\"/{name}\"")), "{name} has a type");
    }
    let styles = part(docx, "word/styles.xml");
    let text = part(docx, "word/document.xml");
    let document = parse(&text);
    let mut ids = Vec::new();
    for node in document.descendants() {
        match node.tag_name().name() {
            "tc" => assert!(node.last_element_child().is_some_and(|last| is(last, "p")), "a cell ends with a paragraph"),
            "tr" => assert!(node.children().any(|child| is(child, "tc")), "a row has a cell"),
            "tbl" => {
                let grid = node.children().find(|child| is(*child, "tblGrid")).expect("a grid");
                let columns = grid.children().filter(|column| is(*column, "gridCol")).count();
                let rows: Vec<_> = node.children().filter(|child| is(*child, "tr")).collect();
                assert!(columns > 0 && !rows.is_empty());
                for row in rows {
                    assert_eq!(row.children().filter(|cell| is(*cell, "tc")).count(), columns, "as many cells as columns");
                }
                let next = node.next_sibling_element().expect("something after the table");
                assert!(is(next, "p"), "a table is followed by a paragraph, not by {next:?}");
            }
            "body" => assert!(node.last_element_child().is_some_and(|last| is(last, "sectPr"))),
            "pStyle" | "rStyle" | "tblStyle" => {
                let style = node.attribute((W, "val")).unwrap();
                assert!(styles.contains(&format!("w:styleId=\"{style}\"")), "there is a style {style}");
            }
            "pPr" => in_order(node, &["pStyle", "keepNext", "keepLines", "pageBreakBefore", "numPr", "jc"]),
            "rPr" => in_order(node, &["rStyle", "rtl"]),
            "bookmarkStart" => ids.push(node.attribute((W, "name")).unwrap().to_owned()),
            "hyperlink" => {
                let anchor = node.attribute((W, "anchor")).unwrap();
                assert!(text.contains(&format!("w:name=\"{anchor}\"")), "{anchor} leads somewhere");
            }
            "t" => assert_eq!(node.attribute(("http://www.w3.org/XML/1998/namespace", "space")), Some("preserve")),
            _ => {}
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no bookmark twice");
    let lists = part(docx, "word/numbering.xml");
    for number in document.descendants().filter(|node| is(*node, "numId")) {
        assert!(lists.contains(&format!("w:numId=\"{}\"", number.attribute((W, "val")).unwrap())));
    }
}

/// The schema wants the properties in its own order.
fn in_order(properties: Node<'_, '_>, order: &[&str]) {
    let places: Vec<usize> = properties
        .children()
        .filter(Node::is_element)
        .map(|child| order.iter().position(|name| is(child, name)).unwrap_or_else(|| panic!("{child:?} is new to this test")))
        .collect();
    assert!(places.is_sorted(), "{places:?} of {order:?}");
}

#[test]
fn word_has_nothing_to_repair() {
    for agenda_id in ["council-2026-11", "large-council", "slow-council", "contradictory-council", "allotments-2026"] {
        well_built(&draft(&sample(agenda_id), Language::Ru).render(Format::Docx));
    }
}

#[test]
fn little_content_makes_no_broken_file_either() {
    let mut agenda: Agenda = sample("slow-council");
    agenda.members.clear();
    agenda.invited.clear();
    agenda.questions.truncate(1);
    let question = &mut agenda.questions[0];
    question.heard.clear();
    question.discussed.clear();
    question.decision.clear();
    question.vote = None;
    question.report = None;
    question.rapporteur = None;
    well_built(&draft(&agenda, Language::Ru).render(Format::Docx));
    agenda.questions.clear();
    let Draft { folder, mut model } = draft(&agenda, Language::Ru);
    let table = |columns: usize, rows: usize| {
        Block::Table(Table {
            caption: Some("Таблица".to_owned()),
            columns: vec![Column { title: String::new(), width: Width::Wide }; columns],
            rows: vec![vec![String::new(); columns]; rows],
        })
    };
    let blocks = vec![Block::List { items: Vec::new() }, table(0, 0), table(2, 0), table(2, 2), table(1, 1)];
    model.annexes = vec![AnnexPage { number: None, title: "Пусто".to_owned(), blocks }];
    model.signatures.clear();
    let file = folder.path().join("empty.docx");
    fs::write(&file, docx(&model).unwrap()).unwrap();
    well_built(&file);
}

#[test]
fn characters_that_xml_forbids_are_never_written() {
    let Draft { folder, mut model } = draft(&sample("slow-council"), Language::Ru);
    // Past CHECK, which would have marked them: nothing else may reach a file that cannot be opened then.
    let forbidden: String = ('\0'..' ').chain(['\u{fffe}', '\u{ffff}']).collect();
    let hostile = format!("а{forbidden}]]>&<\u{ad}\u{2028}б");
    model.title.clone_from(&hostile);
    model.sections[0].title.clone_from(&hostile);
    model.sections[0].blocks = vec![Block::Paragraph { text: hostile }];
    let file = folder.path().join("hostile.docx");
    fs::write(&file, docx(&model).unwrap()).unwrap();
    well_built(&file);
    let text = part(&file, "word/document.xml");
    assert!(text.contains("⟨U+0000⟩⟨U+0001⟩") && text.contains("⟨U+000B⟩⟨U+000C⟩") && text.contains("⟨U+FFFE⟩⟨U+FFFF⟩]]&#62;&#38;&#60;"));
    assert!(part(&file, "docProps/core.xml").contains("⟨U+0000⟩"));
}

#[test]
fn a_table_repeats_its_head_and_the_file_knows_its_language_title_and_time() {
    for (language, locale) in [(Language::Ru, "ru-RU"), (Language::En, "en-GB"), (Language::De, "de-DE")] {
        let draft = draft(&sample("council-2026-11"), language);
        let file = draft.render(Format::Docx);
        let text = part(&file, "word/document.xml");
        let document = parse(&text);
        let tables: Vec<_> = document.descendants().filter(|node| is(*node, "tbl") && value(*node, "tblStyle").is_some()).collect();
        assert!(tables.len() > 1);
        for table in tables {
            let rows: Vec<_> = table.children().filter(|child| is(*child, "tr")).collect();
            let repeats = |row: &Node<'_, '_>| row.descendants().any(|node| is(node, "tblHeader"));
            assert!(repeats(&rows[0]) && !rows[1..].iter().any(repeats), "the first row alone is the head");
        }
        assert!(part(&file, "word/styles.xml").contains(&format!("<w:lang w:val=\"{locale}\"")));
        let core = part(&file, "docProps/core.xml");
        for want in [draft.model.title.as_str(), draft.model.author.as_str(), "2026-11-30T07:00:00Z", locale] {
            assert!(core.contains(want), "{want} is missing in {core}");
        }
    }
}

#[test]
fn a_word_processor_lays_it_out_to_the_standard() {
    let draft = draft(&sample("council-2026-11"), Language::Ru);
    convert(&[&draft.render(Format::Docx)], "pdf", draft.folder.path());
    laid_out_to_the_standard(&draft.folder.path().join("document.pdf"));
}

#[test]
fn the_same_agenda_makes_the_same_bytes_wherever_it_is_made() {
    let model = |id: &str| -> DocumentModel { draft(&sample(id), Language::Ru).model };
    let council = model("council-2026-11");
    let first = sha256(&docx(&council).unwrap());
    docx(&model("slow-council")).unwrap();
    assert_eq!(sha256(&docx(&council).unwrap()), first);
    let elsewhere = std::thread::spawn(move || sha256(&docx(&council).unwrap()));
    assert_eq!(elsewhere.join().unwrap(), first);
}
