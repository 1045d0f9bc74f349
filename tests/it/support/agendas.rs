//! A small agenda without a fault, and ways to spoil it.

use protocol_bridge::{
    domain::{
        agenda::{Agenda, Language},
        failure::Fault,
    },
    generator::{
        check::check_now,
        format::{
            AgendaFormat,
            native::{self, Reading},
        },
    },
};
use serde_json::{Value, json};

/// Five voting members, all there; two questions.
pub fn good() -> Value {
    json!({
        "agendaId": "good",
        "title": "Очередное заседание Совета",
        "body": {"organization": "Город Приозёрск", "name": "Совета депутатов"},
        "language": "ru",
        "place": "г. Приозёрск",
        "timeZone": "Europe/Moscow",
        "start": "2026-11-30T10:00:00+03:00",
        "end": "2026-11-30T12:00:00+03:00",
        "chair": "m1",
        "secretary": "g1",
        "tellers": ["m2"],
        "members": (1..=5).map(|n| json!({"id": format!("m{n}"), "name": format!("Член {n}"), "attendance": "present"})).collect::<Vec<_>>(),
        "invited": [{"id": "g1", "name": "Секретарь А. Б."}],
        "rules": {"quorum": "moreThanHalf", "majority": "simple"},
        "questions": [
            {
                "id": "q1", "order": 1, "title": "О бюджете", "status": "REPORT_SIGNED", "start": "2026-11-30T10:10:00+03:00", "rapporteur": "g1",
                "heard": ["Доклад."], "discussed": [{"speaker": "m2", "text": "Поддержал."}],
                "decision": [{"number": "1.1", "text": "Утвердить бюджет."}, {"text": "Опубликовать.", "due": "2026-12-31"}],
                "vote": {"ballot": "open", "for": 4, "against": 1, "named": [
                    {"member": "m1", "choice": "for"}, {"member": "m2", "choice": "for"}, {"member": "m3", "choice": "for"},
                    {"member": "m4", "choice": "for"}, {"member": "m5", "choice": "against"}
                ]}
            },
            {
                "id": "q2", "order": 2, "title": "О дорогах", "status": "PROTECTED", "start": "2026-11-30T11:00:00+03:00",
                "decision": [{"text": "Отремонтировать дорогу."}],
                "vote": {"ballot": "secret", "for": 3, "against": 1, "abstained": 0, "notVoted": 0,
                         "papers": {"issued": 5, "found": 5, "invalid": 1}}
            }
        ]
    })
}

/// The good agenda with `value` put at `pointer` (the last step of which may be new).
pub fn with(pointer: &str, value: Value) -> Value {
    spoil(good(), pointer, value)
}

/// Puts `value` at `pointer`; null takes it away.
pub fn spoil(mut agenda: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer to something inside");
    let parent = agenda.pointer_mut(parent).unwrap_or_else(|| panic!("{parent} is there"));
    match parent {
        Value::Object(fields) if value.is_null() => drop(fields.shift_remove(key)),
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = value,
        other => panic!("{other} has no parts"),
    }
    agenda
}

/// Nine questions with twelve different faults.
pub fn bad_agenda() -> Value {
    let roll = |last: &str| {
        let voters = ["m1", "m2", "m3", "m4", last];
        voters.iter().map(|member| json!({"member": member, "choice": "for"})).collect::<Vec<_>>()
    };
    let open = |named: Value| json!({"ballot": "open", "for": 5, "against": 0, "named": named});
    let mut agenda = with("/questions", json!([]));
    for n in 1..=9 {
        let question = json!({
            "id": format!("q{n}"), "order": n, "title": format!("Вопрос {n}"), "status": "PROTECTED", "start": format!("2026-11-30T10:{n}0:00+03:00"),
            "decision": [{"text": "Решено."}], "vote": open(json!(roll("m5"))),
        });
        agenda = spoil(agenda, "/questions/-", if n < 6 { question } else { spoil(question, "/start", Value::Null) });
    }
    let changes = [
        ("/questions/0/rapporteur", json!("nobody")),
        ("/questions/0/decision/0/text", json!("")),
        ("/questions/1/vote/named/2/member", json!("m2")),
        ("/questions/2/recusals", json!([{"member": "m5"}])),
        // The recused member's vote is one fault, and no number is wrong for it.
        ("/questions/2/vote", json!({"ballot": "open", "for": 4, "against": 0, "named": roll("m5")[1..]})),
        ("/questions/3/vote", json!({"ballot": "open", "for": 5, "against": 2})),
        ("/questions/4/vote/ballot", json!("secret")),
        ("/questions/4/vote/papers", json!({"issued": 6, "found": 5})),
        ("/questions/5/outcome", json!({"category": "rejected"})),
        ("/questions/6/decision", json!([])),
        ("/questions/7/decision/0/number", json!("8.2")),
        ("/questions/7/decision/0/due", json!("31.12.2026")),
        ("/questions/8/start", json!("2026-11-30T12:30:00+03:00")),
    ];
    for (pointer, value) in changes {
        agenda = spoil(agenda, pointer, value);
    }
    agenda
}

/// The agenda's text with the id that a path ends with.
pub fn under(agenda: &Value, path: &str) -> String {
    spoil(agenda.clone(), "/agendaId", json!(path.trim_start_matches('/'))).to_string()
}

/// Reads an agenda that must be readable.
pub fn read(agenda: &Value) -> (Agenda, Vec<usize>) {
    let reading = Reading { asked: None, language: None, max_questions: 5000 };
    let parsed = native::parse(agenda.to_string().as_bytes(), reading).expect("within the limits");
    assert_eq!(parsed.faults, [], "the agenda is readable");
    (parsed.agenda.expect("an agenda"), parsed.places)
}

/// What CHECK says: errors and warnings, each as `code pointer`.
pub fn findings(agenda: &Value) -> (Vec<String>, Vec<String>) {
    let (agenda, places) = read(agenda);
    let checked = check_now(agenda, AgendaFormat::Native, &places, Language::Ru);
    (told(&checked.errors), told(&checked.warnings))
}

/// Faults as `code pointer`.
pub fn told(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(|fault| format!("{} {}", fault.code, fault.pointer)).collect()
}
