//! `generate`: several documents at once, their kinds by the names' extensions, and everything else said on standard error.

use crate::{
    document_reading::{of_docx, of_html},
    support::process::run,
};
use serde_json::Value;
use std::{fs, process::Output};

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

#[test]
fn one_run_makes_a_document_of_each_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        ["generate", "council-2026-11", "-o", "p.pdf", "-o", "Протокол.DOCX", "-o", "p.html", "-o", "p.json", "-o", "again.pdf"];
    let made = run(&arguments, &[], folder.path());
    assert_eq!((made.status.code(), stderr(&made)), (Some(0), ""));
    let said = String::from_utf8(made.stdout).expect("UTF-8");
    assert_eq!(said.lines().count(), 5, "{said}");
    assert!(said.lines().next().is_some_and(|line| line.starts_with("p.pdf (") && line.ends_with(" pages)")), "{said}");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("p.pdf").starts_with(b"%PDF-") && read("p.pdf") == read("again.pdf"));
    let html = String::from_utf8(read("p.html")).expect("UTF-8");
    assert_eq!(of_html(&html), of_docx(&folder.path().join("Протокол.DOCX")));
    let json: Value = serde_json::from_slice(&read("p.json")).expect("JSON");
    assert_eq!(json["agenda"]["agendaId"], "council-2026-11");
}

#[test]
fn warnings_and_refusals_go_to_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut agenda: Value = serde_json::from_slice(include_bytes!("../../samples/agendas/slow-council.json")).expect("a sample");
    agenda["title"] = "Заседание 😀".into();
    agenda.as_object_mut().expect("an object").remove("sampleDelay");
    fs::write(folder.path().join("agenda.json"), agenda.to_string()).expect("written");
    let warned = run(&["generate", "agenda.json", "-o", "p.html"], &[], folder.path());
    assert_eq!(warned.status.code(), Some(0), "{}", stderr(&warned));
    assert!(
        stderr(&warned).starts_with("warning: ") && stderr(&warned).contains("U+1F600") && stderr(&warned).contains("(/title)"),
        "{}",
        stderr(&warned)
    );
    assert!(fs::read_to_string(folder.path().join("p.html")).expect("the page").contains("⟨U+1F600⟩"));

    for (arguments, code, said) in [
        (["generate", "slow-council", "-o", "p.odt"], 2, "pdf, docx, html, json"),
        (["generate", "no-such-agenda", "-o", "no.docx"], 3, ""),
        (["generate", "contradictory-council", "-o", "no.docx"], 3, "/questions/"),
        (["generate", "agenda.json", "-o", "no/such/folder.docx"], 1, "cannot be written"),
    ] {
        let refused = run(&arguments, &[], folder.path());
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {}", stderr(&refused));
        assert!(refused.stdout.is_empty() && stderr(&refused).contains(said), "{arguments:?}: {}", stderr(&refused));
    }
    assert!(!folder.path().join("no.docx").exists());
}
