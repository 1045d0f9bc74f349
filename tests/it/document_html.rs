//! The HTML of a protocol: accessible, printed to the standard's measures, inert wherever it is opened, and always the same bytes.

use crate::{
    document_reading::parse,
    document_support::{draft, run, sample, sha256},
};
use protocol_bridge::domain::{agenda::Language, protocol::Format};
use std::fs;

fn page(agenda_id: &str, language: Language) -> String {
    fs::read_to_string(draft(&sample(agenda_id), language).render(Format::Html)).unwrap()
}

#[test]
fn a_reader_that_sees_nothing_finds_its_way() {
    for (language, tag) in [(Language::Ru, "ru"), (Language::En, "en"), (Language::De, "de")] {
        let html = page("council-2026-11", language);
        let document = parse(&html);
        let root = document.root_element();
        assert_eq!(root.attribute("lang"), Some(tag));
        let all = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
        for landmark in ["main", "header", "nav", "h1", "title"] {
            assert_eq!(all(landmark).count(), 1, "{landmark}");
        }
        assert!(all("title").all(|title| title.text().is_some_and(|text| text.contains("16"))));

        // Headings go down one step at a time.
        let mut before = 0;
        for heading in document.descendants() {
            let Some(level) = heading.tag_name().name().strip_prefix('h').and_then(|level| level.parse::<u8>().ok()) else { continue };
            assert!(level <= before + 1, "h{level} after h{before}");
            assert!(heading.text().is_some_and(|text| !text.trim().is_empty()), "no heading is empty");
            before = level;
        }

        // Every cell of a table has a head to its column and one to its row.
        assert!(all("table").count() > 1);
        for table in all("table") {
            let rows: Vec<_> = table.descendants().filter(|node| node.has_tag_name("tr")).collect();
            assert!(rows[0].children().all(|cell| cell.attribute("scope") == Some("col")));
            for row in &rows[1..] {
                assert_eq!(row.first_element_child().and_then(|cell| cell.attribute("scope")), Some("row"));
            }
        }

        // The contents lead to the questions; labels name what they point to.
        let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        assert_eq!(ids.len(), ids.iter().collect::<std::collections::HashSet<_>>().len(), "ids are unique");
        let links: Vec<&str> = all("a").filter_map(|link| link.attribute("href")).collect();
        assert_eq!(links.len(), 6);
        assert!(links.iter().all(|link| ids.contains(&link.strip_prefix('#').expect("a link within the page"))));
        assert!(document.descendants().filter_map(|node| node.attribute("aria-labelledby")).all(|label| ids.contains(&label)));
    }
}

#[test]
fn it_can_load_and_run_nothing() {
    let html = page("council-2026-11", Language::Ru);
    let document = parse(&html);
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "embed", "form", "base", "svg"].contains(&name), "{name}");
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(!name.starts_with("on") && !["style", "src", "srcset", "action"].contains(&name), "{name}");
            assert!(name != "href" || attribute.value().starts_with('#'), "{}", attribute.value());
        }
    }
    let policy = document.descendants().find(|node| node.attribute("http-equiv") == Some("Content-Security-Policy")).expect("a policy");
    let policy = policy.attribute("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(
        !html.contains("url(") && !html.contains("@import") && !html.contains("http:") && !html.contains("https:"),
        "no address at all"
    );
}

#[test]
fn the_same_agenda_makes_the_same_page() {
    let first = page("council-2026-11", Language::Ru);
    page("allotments-2026", Language::En);
    assert_eq!(sha256(first.as_bytes()), sha256(page("council-2026-11", Language::Ru).as_bytes()));
}

#[test]
fn it_prints_to_the_standard() {
    let draft = draft(&sample("council-2026-11"), Language::Ru);
    let html = draft.render(Format::Html);
    let pdf = draft.folder.path().join("printed.pdf");
    let profile = draft.folder.path().join("profile");
    run(
        "chromium",
        &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-pdf-header-footer",
            &format!("--user-data-dir={}", profile.display()),
            &format!("--print-to-pdf={}", pdf.display()),
            &format!("file://{}", html.display()),
        ],
    );
    crate::document_pdf::laid_out_to_the_standard(&pdf);
}
