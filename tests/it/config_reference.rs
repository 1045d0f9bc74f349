//! `config.default.toml` is the reference: it holds every key there is, with a comment each, and its examples work.

use protocol_bridge::base::config::{DEFAULTS, Sources, documented, known, load};
use std::{collections::BTreeSet, fs};

/// The keys of the reference as `section.key`, in its own order, each with the line above it.
fn keys() -> Vec<(String, &'static str)> {
    let mut section = String::new();
    let mut above = "";
    let mut keys = Vec::new();
    for line in DEFAULTS.lines() {
        let content = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line);
        if let Some(name) = content.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
            section = format!("{name}.");
        } else if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((key, _)) = content.split_once(" = ")
            && !line.starts_with("# ")
        {
            keys.push((format!("{section}{key}"), above));
        }
        above = line;
    }
    keys
}

#[test]
fn it_holds_every_key_there_is_and_no_other() {
    let documented: BTreeSet<String> = keys().into_iter().map(|(key, _)| key).collect();
    let known: BTreeSet<String> = known().into_iter().collect();
    assert_eq!(documented, known);
}

#[test]
fn every_key_has_a_comment() {
    let bare: Vec<String> = keys().into_iter().filter(|(_, above)| !above.starts_with("# ")).map(|(key, _)| key).collect();
    assert!(bare.is_empty(), "no comment stands above {bare:?}");
}

#[test]
fn its_examples_can_be_used_as_they_stand() {
    assert!(documented().contains_key("callers"), "the examples are filled in");
    // A secret and its file exclude each other, and the example's file is not here.
    let filled: Vec<&str> = DEFAULTS
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[')).unwrap_or(line))
        .filter(|line| !line.contains("_file = "))
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bridge.toml");
    fs::write(&path, filled.join("\n")).expect("written");
    load(&Sources { file: Some(path), ..Sources::default() }).expect("the reference with all its examples is a valid configuration");
}
