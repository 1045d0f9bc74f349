//! Agendas as public bodies publish them: the recorded files, and both public APIs as they answer, become protocols or precise problems.

use crate::support::{
    agendas::told,
    config,
    public_apis::{self, LEGISTAR_EVENT, OPARL_MEETING},
};
use protocol_bridge::{
    base::{clock::Clock, config::Config},
    domain::{failure::Failure, protocol::Format},
    generator::{
        GenerateInput, Generated, InProcessRenderer, generate_once,
        once::{GeneratedDocument, check_once},
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn input(agenda: &str, change: impl FnOnce(&mut Config)) -> GenerateInput {
    let mut config = config();
    change(&mut config);
    let formats = vec![Format::Json, Format::Pdf];
    GenerateInput { agenda: agenda.to_owned(), formats, config, clock: Clock::system(), cancelled: CancellationToken::new() }
}

async fn generate(agenda: &str, change: impl FnOnce(&mut Config)) -> Result<Generated, Failure> {
    generate_once(input(agenda, change), &InProcessRenderer::new(None), &|_, _| {}).await
}

/// The agenda inside the JSON document, and that there is a PDF.
fn agenda_of(generated: &Generated) -> Value {
    let document = |format| generated.documents.iter().find(|document| document.format == format).expect("the document");
    let GeneratedDocument { bytes, .. } = document(Format::Pdf);
    assert!(bytes.starts_with(b"%PDF-1."));
    let json: Value = serde_json::from_slice(&document(Format::Json).bytes).expect("JSON");
    json["agenda"].clone()
}

/// What becomes of a recorded file: how many questions its protocol has, or what is wrong with it.
#[tokio::test]
async fn every_recorded_file_becomes_a_protocol_or_a_precise_problem() {
    let recorded: [(&str, Result<usize, &str>); 7] = [
        ("oparl/spec-example.json", Ok(1)),
        ("oparl/meeting-10065.json", Ok(1)),
        ("oparl/meeting-10086.json", Err("no-questions /questions")),
        ("oparl/meeting-5658.json", Ok(16)),
        ("oparl/meeting-10046.json", Ok(54)),
        ("legistar/event-without-items.json", Err("no-questions /questions")),
        ("legistar/event-with-items-and-votes.json", Ok(4)),
    ];
    for (name, want) in recorded {
        let path = format!("{}/tests/agendas/{name}", env!("CARGO_MANIFEST_DIR"));
        match (generate(&path, |_| {}).await, want) {
            (Ok(generated), Ok(questions)) => {
                assert_eq!(generated.record.questions.len(), questions, "{name}");
                agenda_of(&generated);
            }
            (Err(failure), Err(want)) => assert_eq!(told(&failure.errors), [want], "{name}"),
            (made, _) => panic!("{name}: {made:#?}"),
        }
    }
}

#[tokio::test]
async fn recorded_meetings_keep_their_order_their_words_and_their_links_unfollowed() {
    let path = |name: &str| format!("{}/tests/agendas/{name}", env!("CARGO_MANIFEST_DIR"));
    let generated = generate(&path("oparl/meeting-5658.json"), |_| {}).await.expect("a protocol");
    let agenda = agenda_of(&generated);
    let numbers: Vec<&str> =
        agenda["questions"].as_array().expect("questions").iter().map(|question| question["number"].as_str().expect("a number")).collect();
    let ninth = numbers.iter().position(|number| *number == "1.9");
    let tenth = numbers.iter().position(|number| *number == "1.10");
    assert!(ninth.is_none() || ninth < tenth, "1.10 comes after 1.9: {numbers:?}");
    assert_eq!(agenda["questions"][2]["outcome"], json!({"category": "other", "words": "verwiesen in den Gemeinderat"}));
    // A file on its own follows no links but those of allowed hosts; what is left out is told.
    let warnings = told(&generated.warnings);
    assert!(warnings.contains(&"link-not-followed /organization/0".to_owned()), "{warnings:?}");
    assert!(warnings.contains(&"file-not-followed /questions/1/attachments/0".to_owned()), "{warnings:?}");

    let generated = generate(&path("legistar/event-with-items-and-votes.json"), |_| {}).await.expect("a protocol");
    let agenda = agenda_of(&generated);
    assert_eq!(agenda["start"], "2017-09-12T13:30:00", "no zone is known: the clock is printed as it is");
    assert!(told(&generated.warnings).contains(&"time-zone-missing ".to_owned()), "{:?}", generated.warnings);
    assert_eq!((agenda["members"].as_array().map(Vec::len), &agenda["questions"][2]["vote"]["for"]), (Some(11), &json!(11)));
}

#[tokio::test]
async fn a_legistar_meeting_becomes_a_protocol_with_roll_and_votes() {
    let server = public_apis::legistar().await;
    let address = server.url(&format!("{LEGISTAR_EVENT}?token=abc"));
    let generated = generate(&address, |config| config.agenda.timezone = Some("America/New_York".to_owned())).await.expect("a protocol");
    let agenda = agenda_of(&generated);
    assert_eq!((&agenda["start"], &agenda["place"]), (&json!("2026-03-10T18:30:00-04:00"), &json!("Town Hall, 1 Main Street")));
    assert_eq!(agenda["body"], json!({"organization": "town", "name": "Town Council"}));
    let attendance: Vec<(&str, &str)> = agenda["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|member| (member["name"].as_str().expect("a name"), member["attendance"].as_str().expect("a word")))
        .collect();
    assert_eq!(
        attendance,
        [("Ada Quill", "present"), ("Bo Marsh", "present"), ("Cleo Finch", "present"), ("Dov Harrow", "present"), ("Eva Stone", "absent")]
    );
    assert_eq!(agenda["members"][4]["absenceReason"], "Excused");

    // In the order of the minutes; the row without a text is left out.
    let questions = agenda["questions"].as_array().expect("questions");
    let titles: Vec<&str> = questions.iter().map(|question| question["title"].as_str().expect("a title")).collect();
    assert_eq!(
        titles,
        [
            "Roll Call",
            "Approval of the order of business",
            "A resolution on library hours",
            "An ordinance on street trees",
            "Minutes of 3 March"
        ]
    );
    let library = &questions[2];
    assert_eq!(library["outcome"], json!({"category": "adopted", "words": "Adopted – Pass"}));
    assert_eq!((&library["vote"]["for"], &library["vote"]["against"], &library["vote"]["abstained"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(library["vote"]["named"].as_array().map(Vec::len), Some(4));
    assert_eq!(library.get("attachments"), None, "what is not shown on the internet is not attached");
    let trees = &questions[3];
    assert_eq!(trees["recusals"], json!([{"member": "14", "reason": "Recused"}]));
    assert_eq!(trees["heard"], json!(["Two residents spoke.", "Moved by Ada Quill, seconded by Bo Marsh."]));

    // The consent item's answer was another item's.
    assert_eq!(questions[4].get("vote"), None);
    let warnings = told(&generated.warnings);
    assert!(warnings.contains(&"votes-of-another-item /EventItems/4/Votes".to_owned()), "{warnings:?}");

    // The four calls, with the client's token, and for nothing twice.
    let mut asked: Vec<String> = server.seen().iter().map(|seen| seen.path.clone()).collect();
    asked.sort();
    assert!(asked.iter().all(|path| path.contains("token=abc")), "{asked:?}");
    assert_eq!(asked.iter().filter(|path| path.contains("/rollcalls")).count(), 1, "only what is a roll call is asked for one");
    assert_eq!(asked.iter().filter(|path| path.contains("/votes")).count(), 5);
    let event = asked.iter().filter(|path| path.starts_with(&format!("{LEGISTAR_EVENT}?"))).count();
    assert_eq!(event, 2, "once more at the end: it took more than one request");
}

#[tokio::test]
async fn an_oparl_meeting_becomes_a_protocol_with_all_that_it_links_to() {
    let server = public_apis::oparl().await;
    let generated = generate(&server.url(OPARL_MEETING), |_| {}).await.expect("a protocol");
    let agenda = agenda_of(&generated);
    assert_eq!(agenda["body"], json!({"organization": "Stadt Musterau", "name": "Bauausschuss"}));
    assert_eq!((&agenda["language"], &agenda["place"]), (&json!("de"), &json!("Rathaus, Saal 2")));
    let names: Vec<&Value> = agenda["members"].as_array().expect("members").iter().map(|member| &member["name"]).collect();
    assert_eq!(names, [&json!("Frieda Kern"), &json!("Otto Lang")]);
    let questions = agenda["questions"].as_array().expect("questions");
    let shown: Vec<(&Value, &Value)> = questions.iter().map(|question| (&question["number"], &question["title"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("1"), &json!("Radweg an der Südstraße")),
            (&json!("10"), &json!("Bericht der Verwaltung")),
            (&json!("–"), &json!("(nicht öffentlich)"))
        ],
        "by order, whatever the printed number is"
    );
    assert_eq!(questions[0]["outcome"], json!({"category": "adopted", "words": "einstimmig beschlossen"}));
    assert_eq!(questions[0]["decision"], json!([{"text": "Der Radweg wird gebaut."}]));
    assert_eq!(questions[0]["attachments"][0]["bytes"], 23);
    assert_eq!(questions[1]["outcome"]["category"], "noted");
    assert!(!told(&generated.warnings).iter().any(|warning| warning.starts_with("link-not-followed")), "{:?}", generated.warnings);
}

/// The exports' names are shorter; nothing has to be asked for.
#[tokio::test]
async fn an_export_of_legistar_is_read_by_its_shortened_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("export.json");
    let vote = |id: u32, word: &str| json!({"PersonID": id, "PersonName": format!("Person {id}"), "ValueName": word, "EventItemID": 2, "Result": 1});
    let export = json!({
        "ID": 1, "GUID": "g", "BodyID": 3, "BodyName": "Committee on Parks", "Date": "2026-02-03T10:00:00-05:00", "Location": "City Hall",
        "AgendaStatusName": "Final", "InSiteURL": "https://city.example/x", "LastModified": "2026-02-04T10:00:00Z",
        "Items": [{"ID": 2, "Title": "Benches", "AgendaSequence": 1, "MinutesSequence": 1, "ActionName": "Approved by Committee", "PassedFlagName": "Pass",
            "Votes": [vote(1, "Affirmative"), vote(2, "Affirmative"), vote(3, "Negative")]}]
    });
    std::fs::write(&file, export.to_string()).expect("written");
    let generated = generate(file.to_str().expect("a name"), |_| {}).await.expect("a protocol");
    let agenda = agenda_of(&generated);
    assert_eq!(agenda["body"], json!({"organization": "city.example", "name": "Committee on Parks"}));
    assert_eq!((&agenda["questions"][0]["vote"]["for"], &agenda["questions"][0]["vote"]["against"]), (&json!(2), &json!(1)));
    assert_eq!(agenda["start"], "2026-02-03T10:00:00-05:00");
}

#[tokio::test]
async fn a_meeting_that_is_not_the_one_asked_for_or_was_cancelled_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.json");
    for (agenda, want) in [
        (
            json!({"id": "https://a.example/m/1", "type": "https://schema.oparl.org/1.1/Meeting", "name": "X", "start": "2026-01-01T10:00:00+01:00", "cancelled": true}),
            "meeting-cancelled /cancelled",
        ),
        (json!({"id": "https://a.example/m/1", "type": "https://schema.oparl.org/1.1/Meeting", "name": "X"}), "field-missing /start"),
        (
            json!({"EventId": 1, "EventBodyName": "X", "EventDate": "2026-01-01T00:00:00", "EventAgendaStatusName": "Cancelled"}),
            "meeting-cancelled /EventAgendaStatusName",
        ),
        (json!([{"EventId": 1, "EventBodyName": "X"}]), "field-missing /0/EventDate"),
    ] {
        std::fs::write(&file, agenda.to_string()).expect("written");
        let report = check_once(input(file.to_str().expect("a name"), |_| {})).await.expect("a report");
        let errors = told(&report.errors);
        assert!(errors.contains(&want.to_owned()), "{errors:?}");
    }
}
