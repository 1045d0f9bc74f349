//! What our own agenda format says about agendas that cannot be read: a code, a JSON pointer, the secretary's words; everything at once.

use crate::support::agendas::{good, spoil, told, with};
use protocol_bridge::{
    domain::{agenda::Language, failure::FailureCode},
    generator::format::{
        Parsed,
        native::{self, Reading},
    },
};
use serde_json::{Value, json};

const READING: Reading<'static> = Reading { asked: None, language: Some(Language::En), max_questions: 100 };

fn parse(agenda: &Value) -> Parsed {
    native::parse(agenda.to_string().as_bytes(), READING).expect("within the limits")
}

#[test]
fn each_fault_has_its_code_and_pointer() {
    for (agenda, want) in [
        (with("/title", Value::Null), "field-missing "),
        (with("/titel", json!("x")), "field-unknown /titel"),
        (with("/body/nmae", json!("x")), "field-unknown /body/nmae"),
        (with("/body", json!("x")), "field-wrong /body"),
        (with("/language", json!("fr")), "field-wrong /language"),
        (with("/members/1/attendance", json!("maybe")), "field-wrong /members/1/attendance"),
        (with("/members/1/id", Value::Null), "field-missing /members/1"),
        (with("/members", json!({})), "field-wrong /members"),
        (with("/invited/0/a~1b", json!(1)), "field-unknown /invited/0/a~01b"),
        (with("/questions", Value::Null), "field-missing "),
        (with("/questions", json!("x")), "field-wrong /questions"),
        (with("/questions/0", json!(7)), "field-wrong /questions/0"),
        (with("/questions/0/order", json!("1")), "field-wrong /questions/0/order"),
        (with("/questions/0/order", json!(-1)), "field-wrong /questions/0/order"),
        (with("/questions/1/vote/for", json!(1.5)), "field-wrong /questions/1/vote/for"),
        (with("/questions/1/vote/four", json!(1)), "field-unknown /questions/1/vote/four"),
        (with("/questions/0/decision/1/text", Value::Null), "field-missing /questions/0/decision/1"),
        (with("/questions/0/heard", json!("Доклад.")), "field-wrong /questions/0/heard"),
        (with("/rules/quorum", json!({"atLeast": "3"})), "field-wrong /rules/quorum/atLeast"),
        (json!([1]), "not-json "),
        (json!(null), "not-json "),
    ] {
        let parsed = parse(&agenda);
        assert_eq!(told(&parsed.faults), [want], "{:?}", parsed.faults);
        let detail = &parsed.faults[0].detail;
        assert!(detail.ends_with('.') && !detail.contains('`'), "{detail}");
    }
}

#[test]
fn one_bad_question_does_not_hide_the_others() {
    let mut agenda = spoil(good(), "/questions/0/order", json!("first"));
    agenda = spoil(agenda, "/questions/-", json!({"id": "q3", "order": 3, "status": "PROTECTED", "titel": "О парке", "decison": []}));
    agenda = spoil(agenda, "/place", json!(5));
    agenda = spoil(agenda, "/members/4/nmae", json!("x"));
    let parsed = parse(&agenda);
    assert_eq!(
        told(&parsed.faults),
        [
            "field-unknown /members/4/nmae",
            "field-wrong /questions/0/order",
            "field-unknown /questions/2/titel",
            "field-unknown /questions/2/decison",
            "field-missing /questions/2",
            "field-wrong /place",
        ]
    );
    assert!(parsed.agenda.is_none(), "a head that cannot be read leaves nothing to check");
    let parsed = parse(&spoil(good(), "/questions/0/order", json!("first")));
    assert_eq!(parsed.places, [1], "pointers of the others still name their place at the source");
    assert_eq!(parsed.agenda.expect("the rest is readable").questions[0].id, "q2");
}

#[test]
fn misspelt_names_are_recognised() {
    let parsed = parse(&with("/questions/0/decison", json!([])));
    assert!(parsed.faults[0].detail.contains("“decision”"), "{}", parsed.faults[0].detail);
    let parsed = parse(&with("/questions/0/zzz", json!([])));
    assert!(!parsed.faults[0].detail.contains("meant"), "{}", parsed.faults[0].detail);
}

#[test]
fn the_agenda_must_be_the_one_asked_for() {
    let asked = "other".parse().expect("an id");
    let parsed = native::parse(good().to_string().as_bytes(), Reading { asked: Some(&asked), ..READING }).expect("within the limits");
    assert_eq!(told(&parsed.faults), ["agenda-id-differs /agendaId"]);
}

#[test]
fn faults_are_told_in_the_agendas_language() {
    let reading = Reading { language: None, ..READING };
    for (language, want) in
        [(json!("de"), "fehlt"), (json!("en"), "missing"), (json!("ru"), "Нет"), (Value::Null, "Нет"), (json!(3), "Нет")]
    {
        let agenda = spoil(with("/title", Value::Null), "/language", language.clone());
        let parsed = native::parse(agenda.to_string().as_bytes(), reading).expect("within the limits");
        let all: String = parsed.faults.iter().map(|fault| fault.detail.as_str()).collect();
        // A head with a wrong language has that fault first.
        assert!(all.contains(want) || language == json!(3), "{language}: {all}");
    }
}

#[test]
fn too_many_questions_name_the_limit() {
    let many: Vec<Value> = (0..101).map(|_| json!({})).collect();
    let failure = native::parse(with("/questions", json!(many)).to_string().as_bytes(), READING).expect_err("over the limit");
    assert_eq!(failure.code, FailureCode::AgendaTooLarge);
    assert!(failure.detail.expect("a detail").contains("generator.max_questions is 100"));
}

#[test]
fn hostile_texts_are_refused_or_read_as_they_are() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(told(&native::parse(deep.as_bytes(), READING).expect("within the limits").faults), ["not-json "]);
    let surrogate = good().to_string().replace("О дорогах", "О дорогах \\ud800");
    let parsed = native::parse(surrogate.as_bytes(), READING).expect("within the limits");
    assert_eq!(parsed.faults, []);
    assert_eq!(parsed.agenda.expect("an agenda").questions[1].title, "О дорогах \u{FFFD}");
}
