//! The walk through a mapping in the docs is a real one; and what a mapping cannot do is told.

use crate::support::{agendas::told, config};
use protocol_bridge::{
    base::{clock::Clock, config::Config},
    domain::{failure::FailureCode, protocol::Format},
    generator::{
        GenerateInput, InProcessRenderer, generate_once,
        once::{check_once, map_once},
    },
};
use serde_json::{Value, json};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The agenda and the program of the page.
fn page() -> (Value, String) {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mapping.md")).expect("the page");
    let block = |start: &str, end: &str| text.split_once(start).expect(start).1.split_once(end).expect(end).0.to_owned();
    (serde_json::from_str(&block("```json\n", "```")).expect("JSON"), block("mapping = '''\n", "'''"))
}

fn input(agenda: &Path, mapping: &str) -> GenerateInput {
    let mut config: Config = config();
    config.agenda.mapping = Some(mapping.to_owned());
    GenerateInput {
        agenda: agenda.display().to_string(),
        formats: vec![Format::Json],
        config,
        clock: Clock::system(),
        cancelled: CancellationToken::new(),
    }
}

fn folder(agenda: &Value) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("scans")).expect("made");
    std::fs::write(folder.path().join("scans/1.pdf"), "%PDF-1.4").expect("written");
    let file = folder.path().join("4711.json");
    std::fs::write(&file, agenda.to_string()).expect("written");
    (folder, file)
}

#[tokio::test]
async fn the_walk_through_in_the_docs_makes_a_protocol() {
    let (agenda, mapping) = page();
    assert!(mapping.lines().count() < 40, "a mapping is short");
    let (_folder, file) = folder(&agenda);
    let report = check_once(input(&file, &mapping)).await.expect("a report");
    assert_eq!((told(&report.errors), told(&report.warnings)), (Vec::new(), vec!["report-missing /questions/1/report".to_owned()]));
    let generated = generate_once(input(&file, &mapping), &InProcessRenderer::new(None), &|_, _| {}).await.expect("a protocol");
    assert_eq!((generated.agenda_id.as_str(), generated.number.as_deref()), ("4711", Some("12")));
    let outcomes: Vec<&str> = generated.record.questions.iter().map(|question| question.title.as_str()).collect();
    assert_eq!(outcomes, ["О допуске работы Н. Климова к защите", "О плане работы на 2027 год"]);
    let mapped = map_once(input(&file, &mapping)).await.expect("what becomes of it");
    assert_eq!(mapped["questions"][0]["status"], "PROTECTED");
}

#[tokio::test]
async fn faults_point_into_the_mapped_agenda() {
    let (mut agenda, mapping) = page();
    agenda["items"][1]["state"] = json!(1);
    agenda["items"][0]["votes"]["pro"] = json!([1, 3, 9]);
    let (_folder, file) = folder(&agenda);
    let report = check_once(input(&file, &mapping)).await.expect("a report");
    let errors = told(&report.errors);
    assert!(errors.contains(&"unknown-person /questions/0/vote/named/2/member".to_owned()), "{errors:?}");
    assert!(errors.contains(&"question-not-ready /questions/1/status".to_owned()), "{errors:?}");

    agenda["items"][1]["state"] = json!(7);
    let (_folder, file) = folder(&agenda);
    let report = check_once(input(&file, &mapping)).await.expect("a report");
    assert!(told(&report.errors).contains(&"field-wrong /questions/1/status".to_owned()), "{:?}", report.errors);
}

#[tokio::test]
async fn a_mapping_that_fails_says_how_and_on_what() {
    let (_folder, file) = folder(&json!({"meeting": "none"}));
    for (mapping, want) in [(page().1, "cannot index"), ("empty".to_owned(), "no value"), (".a, .b".to_owned(), "more than one")] {
        let report = check_once(input(&file, &mapping)).await.expect("a report");
        assert_eq!(told(&report.errors), ["mapping-failed "], "{mapping}");
        let detail = &report.errors[0].detail;
        assert!(detail.contains(want) && detail.contains("{\"meeting\":\"none\"}"), "{detail}");
        assert_eq!(map_once(input(&file, &mapping)).await.expect_err("the same").code, FailureCode::AgendaInvalid);
    }
}

#[test]
fn a_program_that_is_none_is_refused_with_the_configuration() {
    let problem = |format: &str, mapping: Option<&str>| {
        let mut config = config();
        format.clone_into(&mut config.agenda.format);
        config.agenda.mapping = mapping.map(str::to_owned);
        config.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(problem("mapped", Some(".")), "");
    assert!(problem("auto", Some("{\n  a: }")).contains("line 2, column 6"), "{}", problem("auto", Some("{\n  a: }")));
    assert!(problem("mapped", None).contains("agenda.mapping"));
    assert!(problem("oparl", Some(".")).contains("agenda.mapping"));
    assert!(problem("xml", None).contains("agenda.format"));
}
