//! The bundled samples behave as they are meant to.

use crate::{
    generator_node::id,
    support::{agendas::told, config},
};
use protocol_bridge::{
    base::clock::Clock,
    domain::{failure::FailureCode, protocol::Format, task::Phase},
    generator::{
        GenerateInput, Generated, InProcessRenderer, generate_once,
        once::check_once,
        source::{Source, samples},
    },
};
use std::{collections::BTreeSet, sync::Mutex, time::Duration};
use tokio_util::sync::CancellationToken;

fn input(agenda: &str, formats: &[Format]) -> GenerateInput {
    let mut config = config();
    config.agenda.ready_grace = Duration::ZERO;
    GenerateInput {
        agenda: agenda.to_owned(),
        formats: formats.to_vec(),
        config,
        clock: Clock::system(),
        cancelled: CancellationToken::new(),
    }
}

async fn generate(agenda: &str, formats: &[Format]) -> Result<Generated, protocol_bridge::domain::failure::Failure> {
    generate_once(input(agenda, formats), &InProcessRenderer::new(None), &|_, _| {}).await
}

#[test]
fn every_file_of_the_folder_is_a_sample() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/agendas");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .map(|name| name.strip_suffix(".json").expect("only agendas").to_owned())
        .collect();
    let bundled: Vec<String> = samples::ids().map(|id| id.to_string()).collect();
    assert_eq!(bundled, files.into_iter().collect::<Vec<_>>(), "in order, so that they can be listed a page at a time");
}

#[tokio::test]
async fn good_samples_have_no_fault_and_bad_ones_theirs() {
    for sample in samples::ids() {
        let report = check_once(input(sample.as_str(), &[])).await.expect("a report");
        match sample.as_str() {
            "unsigned-council" => {
                assert!(!report.errors.is_empty());
                assert!(report.errors.iter().all(|fault| fault.code == "question-not-ready"), "{:#?}", report.errors);
            }
            "contradictory-council" => assert!(report.errors.len() >= 5, "{:#?}", report.errors),
            name => assert_eq!((told(&report.errors), told(&report.warnings)), (Vec::new(), Vec::new()), "{name}"),
        }
    }
}

#[tokio::test]
async fn an_unsigned_agenda_names_its_questions() {
    let failure = generate("unsigned-council", &[Format::Json]).await.expect_err("it is not ready");
    assert_eq!((failure.code, failure.phase), (FailureCode::AgendaNotReady, Some(Phase::Collect)));
    assert!(!failure.errors.is_empty());
    for fault in failure.errors {
        assert!(fault.pointer.ends_with("/status") && fault.detail.starts_with("Вопрос "), "{fault:?}");
    }
}

#[tokio::test]
async fn a_contradictory_agenda_is_told_everything_at_once() {
    let failure = generate("contradictory-council", &[Format::Json]).await.expect_err("it contradicts itself");
    assert_eq!((failure.code, failure.phase), (FailureCode::AgendaInvalid, Some(Phase::Check)));
    assert!(failure.errors.len() >= 5, "{:#?}", failure.errors);
    let questions: BTreeSet<&str> = failure.errors.iter().filter_map(|fault| fault.pointer.split('/').nth(2)).collect();
    assert!(questions.len() >= 3, "{questions:?}");
}

#[tokio::test]
async fn the_same_sample_gives_the_same_bytes_and_its_progress_only_grows() {
    let formats = Format::ALL;
    let told = Mutex::new(Vec::new());
    let one = generate_once(input("council-2026-11", &formats), &InProcessRenderer::new(None), &|phase, progress| {
        told.lock().expect("nobody panics").push((phase, progress));
    })
    .await
    .expect("a protocol");
    let two = generate("council-2026-11", &formats).await.expect("a protocol");
    assert_eq!(one, two);
    assert!(one.documents[0].bytes.starts_with(b"%PDF-1."));
    assert!(one.documents[0].pages > Some(1));
    let json: serde_json::Value = serde_json::from_slice(&one.documents[3].bytes).expect("JSON");
    assert_eq!(json["agenda"]["agendaId"], "council-2026-11");
    assert_eq!(json["questions"].as_array().map(Vec::len), Some(one.record.questions.len()));

    let told = told.into_inner().expect("nobody panics");
    let known: Vec<_> = told.iter().filter(|(_, progress)| progress.known > 0).collect();
    assert!(known.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1.done <= pair[1].1.done), "{told:?}");
    let (phase, last) = told.last().expect("something was told");
    assert_eq!((*phase, last.done), (Phase::Publish, last.known), "all that was known is done");
}

#[tokio::test]
async fn a_slow_sample_takes_its_time_question_by_question_and_can_be_stopped() {
    let clock = Clock::manual("2026-11-30T12:00:00Z".parse().expect("a time"));
    let input = GenerateInput { clock: clock.clone(), ..input("slow-council", &[Format::Json]) };
    let cancelled = input.cancelled.clone();
    let steps = Mutex::new(0);
    let on_progress = |_, progress: protocol_bridge::domain::task::Progress| *steps.lock().expect("nobody panics") = progress.done;
    let renderer = InProcessRenderer::new(None);
    let generating = generate_once(input, &renderer, &on_progress);
    let watching = async {
        let mut last = 0;
        for _ in 0..3 {
            crate::support::eventually(Duration::from_secs(20), "another question is collected", || {
                clock.advance(Duration::from_millis(500));
                let done = *steps.lock().expect("nobody panics");
                async move { done > last }
            })
            .await;
            last = *steps.lock().expect("nobody panics");
        }
        cancelled.cancel();
    };
    let (failure, ()) = tokio::join!(generating, watching);
    assert_eq!(failure.expect_err("it was stopped").code, FailureCode::Cancelled);
}

#[tokio::test]
async fn samples_are_listed_a_page_at_a_time_and_an_unknown_one_is_not_found() {
    let first = Source::Samples.list(None, 2).await.expect("a list");
    assert_eq!(first.len(), 2);
    let second = Source::Samples.list(first.last(), 100).await.expect("a list");
    assert_eq!(first.into_iter().chain(second).collect::<Vec<_>>(), samples::ids().collect::<Vec<_>>());
    assert_eq!(generate("nobody", &[Format::Json]).await.expect_err("unknown").code, FailureCode::AgendaNotFound);
    assert!(Source::Samples.fetch(&id("nobody")).await.is_err());
}

#[tokio::test]
async fn a_file_is_read_with_what_lies_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let agenda = crate::support::agendas::with(
        "/questions/0/report",
        serde_json::json!({"href": "reports/one.pdf", "mediaType": "application/pdf", "bytes": 3,
            "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}),
    );
    let path = folder.path().join("any name.json");
    std::fs::write(&path, agenda.to_string()).expect("written");
    std::fs::create_dir(folder.path().join("reports")).expect("made");
    std::fs::write(folder.path().join("reports/one.pdf"), "abc").expect("written");
    let generated = generate(path.to_str().expect("a name"), &[Format::Json]).await.expect("a protocol");
    assert_eq!(generated.agenda_id, "good");
    let json: serde_json::Value = serde_json::from_slice(&generated.documents[0].bytes).expect("JSON");
    assert_eq!(json["agenda"]["questions"][0]["report"]["name"], "one.pdf");

    std::fs::write(folder.path().join("reports/one.pdf"), "abd").expect("written");
    let failure = generate(path.to_str().expect("a name"), &[Format::Json]).await.expect_err("another file");
    assert_eq!(told(&failure.errors), ["report-altered /questions/0/report"]);
    std::fs::remove_file(folder.path().join("reports/one.pdf")).expect("removed");
    let failure = generate(path.to_str().expect("a name"), &[Format::Json]).await.expect_err("no file");
    assert_eq!(failure.code, FailureCode::ReportUnavailable);
}
