//! Imports go down the floors, so that each floor can be read, tested and thought about without those above it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The modules by floor. Whoever knows all floors is not listed.
const FLOORS: [(&str, u8); 10] = [
    ("domain", 0),
    ("base", 1),
    ("store", 2),
    ("engine", 3),
    ("generator", 4),
    ("callers", 4),
    ("bridge", 4),
    ("http", 5),
    ("web", 6),
    ("app", 7),
];

/// Pairs on one floor that may not know each other (from, to): callers and the generator stand alone; the bridge may use both.
const APART: [(&str, &str); 4] = [("generator", "callers"), ("generator", "bridge"), ("callers", "generator"), ("callers", "bridge")];

/// Only these may name the bridge, so that v1 can be deleted with it.
const KNOW_THE_BRIDGE: [&str; 5] = ["bridge/", "app.rs", "lib.rs", "http/api.rs", "http/routes/merge_by_agenda.rs"];

fn floor(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

/// Whether a file of module `from` may import from module `to`.
fn may_import(from: &str, to: &str) -> bool {
    match (floor(from), floor(to)) {
        (Some(from_floor), Some(to_floor)) => to_floor <= from_floor && !APART.contains(&(from, to)),
        // cli.rs, main.rs, lib.rs know everything; a module that is on no floor may not be imported from one.
        (None, _) => true,
        (Some(_), None) => false,
    }
}

/// The top-level modules of the crate that a file names, with the line.
fn named_modules(text: &str, depth: usize) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (number, line) in code_lines(text) {
        for (place, _) in line.match_indices("crate::") {
            let from_protocol_bridge = line[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if !from_protocol_bridge {
                named.extend(first_names(&line[place + "crate::".len()..]).into_iter().map(|name| (number, name)));
            }
        }
        // As many `super` as the file is deep lead to the root as well.
        let climb = "super::".repeat(depth);
        for (place, _) in line.match_indices(&climb) {
            let whole_chain = !line[..place].ends_with("super::");
            let found = first_names(line[place + climb.len()..].trim_start_matches("super::"));
            named.extend(found.into_iter().filter(|name| whole_chain && floor(name).is_some()).map(|name| (number, name)));
        }
    }
    named
}

/// Statements on one line each, without comments and texts, with the number of their first line.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut statements = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let line = without_texts(line.split("//").next().unwrap_or_default());
        let (number, mut statement) = open.take().unwrap_or((index + 1, String::new()));
        statement.push_str(line.trim());
        // A `use` goes on over lines until its semicolon.
        let is_use =
            statement.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").starts_with("use ");
        if is_use && !statement.contains(';') {
            open = Some((number, statement));
        } else {
            statements.push((number, statement));
        }
    }
    statements
}

fn without_texts(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// `a` of `a::b`, or `a` and `c` of `{a::{x, y}, c::d}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut depth = 0;
    let mut names = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(String::new()),
            c if depth == 0 => names.last_mut().expect("it begins with one").push(c),
            _ => {}
        }
    }
    names.iter().map(|text| name(text)).filter(|name| !name.is_empty()).collect()
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn imports_go_down_the_floors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 50, "the sources are found");
    let mut wrong = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root).expect("below it").to_str().expect("UTF-8").to_owned();
        let module = file.split('/').next().expect("a name").trim_end_matches(".rs").to_owned();
        let depth = file.trim_end_matches("/mod.rs").split('/').count();
        for (line, named) in named_modules(&fs::read_to_string(&path).expect("a text"), depth) {
            if !may_import(&module, &named) {
                wrong.push(format!("src/{file}:{line} names {named}"));
            }
            if named == "bridge" && !KNOW_THE_BRIDGE.iter().any(|known| file.starts_with(known)) {
                wrong.push(format!("src/{file}:{line} names the bridge"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports only go down (see docs/ARCHITECTURE.md):\n{}", wrong.join("\n"));
}

#[test]
fn what_a_file_names_is_found_however_it_is_written() {
    let names = |text: &str, depth| named_modules(text, depth).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("use crate::engine::Hub;", 2), ["engine"]);
    assert_eq!(names("use crate::{\n    base::{clock, config},\n    store::{self, Db},\n};\nfn f() {}", 2), ["base", "store"]);
    assert_eq!(names("    let x = crate::http::router(crate::base::x);", 2), ["http", "base"]);
    assert_eq!(names("use super::super::engine::Hub;", 2), ["engine"]);
    assert_eq!(names("pub(crate) use crate::web;\n", 2), ["web"]);
    assert!(names("// crate::engine\n//! [`crate::engine`]\nlet x = \"crate::engine\";", 2).is_empty());
    assert!(names("use protocol_bridge_crate::engine;", 2).is_empty());
    assert!(
        !may_import("store", "engine")
            && !may_import("generator", "bridge")
            && may_import("bridge", "callers")
            && may_import("cli", "http")
    );
}
