//! `protocol-bridge check`, as it is started: what it prints where, and its exit codes.

use crate::support::agendas::{bad_agenda, good};
use serde_json::Value;
use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

fn check(arguments: &[&str], input: &str) -> Output {
    check_with(&[], arguments, input)
}

fn check_with(environment: &[(&str, &str)], arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_protocol-bridge"))
        .arg("check")
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn folder(agendas: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in agendas {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn every_fault_is_a_line_with_its_place() {
    let folder = folder(&[("bad.json", bad_agenda().to_string()), ("good.json", good().to_string())]);

    let bad = check(&[&path(folder.path(), "bad.json")], "");
    assert_eq!(bad.status.code(), Some(3));
    let text = stdout(&bad);
    assert!(text.lines().next().expect("a line").ends_with("bad.json: ошибок: 12, замечаний: 0"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ошибка\t")).count(), 12, "{text}");
    assert!(text.contains("\tnothing-decided\t/questions/6/decision\tВопрос 7 «Вопрос 7»: нет ни решения"), "{text}");

    let good = check(&[&path(folder.path(), "good.json")], "");
    assert_eq!((good.status.code(), stdout(&good).lines().count()), (Some(0), 1));
}

#[test]
fn json_says_what_the_api_says_in_the_language_asked_for() {
    let folder = folder(&[("bad.json", bad_agenda().to_string())]);
    let output = check(&["--json", "--language", "de", &path(folder.path(), "bad.json")], "");
    assert_eq!(output.status.code(), Some(3));
    let report = json(&output);
    assert_eq!((&report["agendaId"], &report["ready"]), (&Value::from("good"), &Value::from(false)));
    let errors = report["errors"].as_array().expect("a list");
    assert_eq!(errors.len(), 12);
    assert!(errors[0]["detail"].as_str().expect("a text").starts_with("Tagesordnungspunkt 1 „Вопрос 1“: "), "{}", errors[0]);
}

#[test]
fn an_agenda_may_come_from_standard_input() {
    assert_eq!(check(&["-"], &good().to_string()).status.code(), Some(0));
    let cut = check(&["-", "--json"], "{\"agendaId\": ");
    assert_eq!(cut.status.code(), Some(3));
    assert_eq!(json(&cut)["errors"][0]["code"], "not-json");
}

#[test]
fn every_agenda_of_a_folder_is_looked_at() {
    let folder = folder(&[("a.json", good().to_string()), ("b.json", bad_agenda().to_string()), ("notes.txt", String::new())]);
    let output = check(&["--json", &folder.path().display().to_string()], "");
    assert_eq!(output.status.code(), Some(3));
    let report = json(&output);
    let ready: Vec<bool> = report["items"].as_array().expect("a list").iter().map(|item| item["ready"] == true).collect();
    assert_eq!(ready, [true, false]);
}

#[test]
fn an_id_is_looked_up_in_the_configured_source() {
    let folder = folder(&[("good.json", good().to_string())]);
    let source = folder.path().display().to_string();
    let known = check_with(&[("PROTOCOL_BRIDGE__AGENDA__SOURCE", &source)], &["--json", "good"], "");
    assert_eq!((known.status.code(), &json(&known)["ready"]), (Some(0), &Value::from(true)));
    assert_eq!(check(&["good"], "").status.code(), Some(3), "no sample is called like that");
    assert_eq!(check(&["council-2026-11"], "").status.code(), Some(0));
}

#[test]
fn what_is_unknown_is_refused_and_what_does_not_answer_is_a_failure() {
    let unknown = check(&["no-such-sample"], "");
    assert_eq!((unknown.status.code(), unknown.stdout), (Some(3), b"no-such-sample\n".to_vec()));
    assert!(!unknown.stderr.is_empty());
    // Nobody listens on port 1.
    let away = check(&["--json", "http://127.0.0.1:1/agenda.json"], "");
    assert_eq!(away.status.code(), Some(1), "{}", String::from_utf8_lossy(&away.stderr));
    assert_eq!(json(&away)["failure"]["code"], "agenda-source-unavailable");
    assert_eq!(check(&["--language", "fr", "x"], "").status.code(), Some(2));
}
