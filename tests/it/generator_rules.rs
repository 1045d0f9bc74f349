//! Every rule fires where it should and nowhere else.

use crate::support::agendas::{findings, good, read, spoil, with};
use protocol_bridge::{
    domain::agenda::Language,
    generator::{check::check_now, format::AgendaFormat, rules::RULES},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn a_good_agenda_has_no_fault() {
    assert_eq!(findings(&good()), (Vec::new(), Vec::new()));
}

/// Changes to the good agenda, and exactly what is then found.
fn bad_agendas() -> Vec<(Value, Vec<&'static str>)> {
    let two = |one: (&str, Value), other: (&str, Value)| spoil(with(one.0, one.1), other.0, other.1);
    let late = json!([{"from": "2026-11-30T10:30:00+03:00"}]);
    vec![
        (with("/questions", json!([])), vec!["no-questions /questions"]),
        (with("/title", json!(" ")), vec!["text-missing /title"]),
        (with("/body/name", json!("")), vec!["text-missing /body/name"]),
        (with("/questions/1/decision/0/text", json!("")), vec!["text-missing /questions/1/decision/0/text"]),
        (
            with("/invited/0/id", json!("m3")),
            vec!["duplicate-id /invited/0/id", "unknown-person /secretary", "unknown-person /questions/0/rapporteur"],
        ),
        (with("/questions/1/id", json!("q1")), vec!["duplicate-id /questions/1/id"]),
        (with("/questions/1/order", json!(1)), vec!["duplicate-order /questions/1/order"]),
        (with("/chair", json!("g1")), vec!["unknown-person /chair"]),
        (with("/secretary", json!("nobody")), vec!["unknown-person /secretary"]),
        (with("/tellers/0", json!("nobody")), vec!["unknown-person /tellers/0"]),
        (with("/questions/0/rapporteur", json!("nobody")), vec!["unknown-person /questions/0/rapporteur"]),
        (with("/questions/0/discussed/0/speaker", json!("nobody")), vec!["unknown-person /questions/0/discussed/0/speaker"]),
        (with("/questions/0/recusals", json!([{"member": "g1"}])), vec!["unknown-person /questions/0/recusals/0/member"]),
        (with("/questions/0/vote/named/4/member", json!("nobody")), vec!["unknown-person /questions/0/vote/named/4/member"]),
        (
            with("/questions/0/vote/dissent", json!([{"member": "x", "text": "Нет."}])),
            vec!["unknown-person /questions/0/vote/dissent/0/member"],
        ),
        (
            with("/members/0/attendance", json!("absent")),
            vec![
                "chair-absent /chair",
                "votes-do-not-add-up /questions/0/vote",
                "voter-not-present /questions/0/vote/named/0/member",
                "votes-do-not-add-up /questions/1/vote",
            ],
        ),
        (with("/start", json!("30.11.2026")), vec!["time-unreadable /start"]),
        (with("/questions/0/start", json!("2026-11-30T10:10:00")), vec!["time-unreadable /questions/0/start"]),
        (with("/timeZone", json!("Europe/Priozersk")), vec!["time-zone-unknown /timeZone"]),
        (with("/end", json!("2026-11-30T09:00:00+03:00")), vec!["sitting-ends-before-it-starts /end"]),
        (with("/questions/0/start", json!("2026-11-30T09:59:00+03:00")), vec!["time-outside-sitting /questions/0/start"]),
        (with("/questions/1/start", json!("2026-11-30T12:01:00+03:00")), vec!["time-outside-sitting /questions/1/start"]),
        (with("/members/4/presence", json!([{"to": "2026-11-30T13:00:00+03:00"}])), vec!["time-outside-sitting /members/4/presence/0/to"]),
        (
            two(("/rules/quorum", json!({"atLeast": 5})), ("/questions/1/recusals", json!([{"member": "m5"}]))),
            vec!["no-quorum /questions/1/vote", "votes-do-not-add-up /questions/1/vote"],
        ),
        (
            with("/questions/0/vote/against", json!(2)),
            vec!["votes-do-not-add-up /questions/0/vote", "named-votes-differ /questions/0/vote/against"],
        ),
        (with("/questions/0/vote/notVoted", json!(1)), vec!["votes-do-not-add-up /questions/0/vote"]),
        (
            with("/questions/0/vote/named/3/choice", json!("against")),
            vec!["named-votes-differ /questions/0/vote/for", "named-votes-differ /questions/0/vote/against"],
        ),
        (with("/questions/0/vote/named/3/member", json!("m1")), vec!["voted-twice /questions/0/vote/named/3/member"]),
        (
            with("/questions/0/recusals", json!([{"member": "m5"}])),
            vec!["votes-do-not-add-up /questions/0/vote", "voter-recused /questions/0/vote/named/4/member"],
        ),
        (
            with("/members/4/votingRight", json!(false)),
            vec![
                "votes-do-not-add-up /questions/0/vote",
                "voter-not-entitled /questions/0/vote/named/4/member",
                "votes-do-not-add-up /questions/1/vote",
            ],
        ),
        (
            with("/questions/1/vote/named", json!([{"member": "m1", "choice": "against"}])),
            vec!["secret-ballot-with-names /questions/1/vote/named"],
        ),
        (with("/questions/1/vote/papers/issued", json!(6)), vec!["ballot-papers-do-not-add-up /questions/1/vote/papers/issued"]),
        (
            two(("/questions/1/vote/papers/found", json!(4)), ("/questions/1/vote/papers/notReturned", json!(1))),
            vec!["ballot-papers-do-not-add-up /questions/1/vote/papers/found"],
        ),
        (with("/questions/0/outcome", json!({"category": "rejected"})), vec!["decision-against-the-vote /questions/0/outcome/category"]),
        (with("/questions/0/vote/majority", json!("absolute")), vec![]),
        (with("/questions/1/vote/majority", json!("twoThirds")), vec!["decision-against-the-vote /questions/1/decision"]),
        (with("/questions/1/vote/majority", json!("twoThirdsOfPresent")), vec!["decision-against-the-vote /questions/1/decision"]),
        (with("/questions/1/vote/majority", json!("ofPresent")), vec![]),
        (with("/questions/1/decision", json!([])), vec!["nothing-decided /questions/1/decision"]),
        (
            two(("/questions/1/decision", json!([])), ("/questions/1/outcome", json!({"category": "adopted"}))),
            vec!["nothing-decided /questions/1/decision"],
        ),
        (with("/questions/0/decision/0/number", json!("1.2")), vec!["decision-numbering /questions/0/decision/0/number"]),
        (with("/questions/0/number", json!("7")), vec!["decision-numbering /questions/0/decision/0/number"]),
        (with("/questions/0/decision/1/due", json!("31.12.2026")), vec!["date-unreadable /questions/0/decision/1/due"]),
        (
            with("/questions/0/report", json!({"href": "r.pdf", "mediaType": "application/pdf", "sha256": "abc"})),
            vec!["digest-unreadable /questions/0/report/sha256"],
        ),
        (with("/members/4/absenceReason", json!("болезнь")), vec!["attendance-contradictory /members/4/absenceReason"]),
        (
            two(("/members/4/attendance", json!("absent")), ("/members/4/presence", json!([{"to": "2026-11-30T10:30:00+03:00"}]))),
            vec![
                "attendance-contradictory /members/4/presence",
                "votes-do-not-add-up /questions/0/vote",
                "voter-not-present /questions/0/vote/named/4/member",
                "votes-do-not-add-up /questions/1/vote",
            ],
        ),
        (
            with("/members/4/presence", json!([{"to": "2026-11-30T11:30:00+03:00"}, {"from": "2026-11-30T11:20:00+03:00"}])),
            vec!["attendance-contradictory /members/4/presence/1"],
        ),
        (
            with("/members/4/presence", json!([{"from": "2026-11-30T11:50:00+03:00", "to": "2026-11-30T11:40:00+03:00"}])),
            vec![
                "attendance-contradictory /members/4/presence/0",
                "votes-do-not-add-up /questions/0/vote",
                "voter-not-present /questions/0/vote/named/4/member",
            ],
        ),
        (
            two(("/secretary", json!("m4")), ("/members/3/attendance", json!("absent"))),
            vec![
                "secretary-absent /secretary",
                "votes-do-not-add-up /questions/0/vote",
                "voter-not-present /questions/0/vote/named/3/member",
                "votes-do-not-add-up /questions/1/vote",
            ],
        ),
        (
            two(
                ("/questions/1/recusals", json!([{"member": "m5"}])),
                ("/questions/1/vote/dissent", json!([{"member": "m5", "text": "Против."}])),
            ),
            vec!["votes-do-not-add-up /questions/1/vote", "dissenter-took-no-part /questions/1/vote/dissent/0/member"],
        ),
        (
            two(("/questions/1/vote/papers/issued", json!(7)), ("/questions/1/vote/papers/notReturned", json!(2))),
            vec!["ballot-papers-do-not-add-up /questions/1/vote/papers/issued"],
        ),
        // Somebody who comes during a question may have voted on it or not; who came after it cannot have.
        (with("/members/4/presence", late), vec![]),
        (
            with("/members/4/presence", json!([{"from": "2026-11-30T11:00:00+03:00"}])),
            vec!["votes-do-not-add-up /questions/0/vote", "voter-not-present /questions/0/vote/named/4/member"],
        ),
        (with("/members/4/presence", json!([{"to": "2026-11-30T10:55:00+03:00"}])), vec!["votes-do-not-add-up /questions/1/vote"]),
        (with("/questions/1/outcome", json!({"category": "other", "words": "как решили"})), vec![]),
    ]
}

#[test]
fn each_rule_fires_where_it_should_and_nowhere_else() {
    for (agenda, mut want) in bad_agendas() {
        let (mut errors, _) = findings(&agenda);
        errors.sort();
        want.sort_unstable();
        assert_eq!(errors, want, "{agenda:#}");
    }
}

#[test]
fn every_rule_is_tried() {
    let mut fired: BTreeSet<String> = bad_agendas().iter().flat_map(|(agenda, _)| findings(agenda).0).collect();
    fired.extend(warnings().iter().flat_map(|(agenda, _)| findings(agenda).1));
    fired.extend(["chair-not-there".to_owned(), "speaker-not-there".to_owned()]); // who_left_is_missed
    let codes: BTreeSet<&str> = fired.iter().filter_map(|told| told.split(' ').next()).collect();
    let silent: Vec<&str> = RULES.iter().map(|rule| rule.code).filter(|code| !codes.contains(code)).collect();
    assert_eq!(silent, Vec::<&str>::new());
}

fn warnings() -> Vec<(Value, Vec<&'static str>)> {
    let no_time = spoil(with("/questions/0/start", Value::Null), "/members/4/presence", json!([{"from": "2026-11-30T10:30:00+03:00"}]));
    let report = json!({"href": "r.pdf", "mediaType": "application/pdf"});
    vec![
        (with("/timeZone", Value::Null), vec!["time-zone-missing "]),
        (no_time, vec!["question-time-missing /questions/0"]),
        (with("/questions/1/report", report), vec!["report-missing /questions/0/report"]),
        (with("/tellers", json!([])), vec!["tellers-missing /tellers"]),
        (
            spoil(with("/questions/1/vote/papers", Value::Null), "/questions/1/vote/against", json!(2)),
            vec!["ballot-papers-missing /questions/1/vote"],
        ),
        (with("/questions/1/number", json!("1")), vec!["duplicate-number /questions/1/number"]),
        (with("/questions/0/decision/1/due", json!("2026-11-29")), vec!["due-before-the-sitting /questions/0/decision/1/due"]),
        (
            with("/questions/0/vote/dissent", json!([{"member": "m1", "text": "Не согласен."}])),
            vec!["dissent-of-a-supporter /questions/0/vote/dissent/0/member"],
        ),
        (with("/title", json!("Заседание\u{0} совета\u{7}")), vec!["unprintable-character /title"]),
        (with("/questions/0/title", json!("О празднике 😀")), vec!["unprintable-character /questions/0/title"]),
    ]
}

#[test]
fn warnings_do_not_stop_a_protocol() {
    for (agenda, want) in warnings() {
        assert_eq!(findings(&agenda), (Vec::new(), want.into_iter().map(str::to_owned).collect()), "{agenda:#}");
    }
}

#[test]
fn texts_are_made_printable() {
    let agenda = with("/questions/0/title", json!("О бюджете\r\nна й\u{0}од 😀 \u{ffff}"));
    let agenda = spoil(agenda, "/place", json!("Сара\u{306}тов И\u{306}"));
    let (agenda, places) = read(&agenda);
    let checked = check_now(agenda, AgendaFormat::Native, &places, Language::Ru);
    assert_eq!(checked.agenda.questions[0].title, "О бюджете\nна йод ⟨U+1F600⟩ ⟨U+FFFF⟩");
    assert_eq!(checked.agenda.place.as_deref(), Some("Сарӑтов Й"));
    assert!(checked.warnings.iter().any(|fault| fault.detail.contains("U+0000")));
}

#[test]
fn faults_name_the_question_and_what_to_do_in_the_agendas_language() {
    let (agenda, places) = read(&with("/questions/0/vote/against", json!(2)));
    for (language, start, end) in [
        (Language::Ru, "Вопрос 1 «О бюджете»: голосов всего 6 (за — 4, против — 2", "Сверьте итоги голосования с явкой."),
        (Language::En, "Question 1 “О бюджете”: the votes make 6 (for 4, against 2", "Compare the count with the attendance."),
        (Language::De, "Tagesordnungspunkt 1 „О бюджете“: die Stimmen ergeben 6 (dafür 4, dagegen 2", "mit der Anwesenheit."),
    ] {
        let checked = check_now(agenda.clone(), AgendaFormat::Native, &places, language);
        let detail = &checked.errors[0].detail;
        assert!(detail.starts_with(start) && detail.ends_with(end), "{detail}");
    }
}

#[test]
fn no_sentence_has_a_gap() {
    for (agenda, _) in bad_agendas().into_iter().chain(warnings()) {
        for language in [Language::Ru, Language::En, Language::De] {
            let (agenda, places) = read(&agenda);
            let checked = check_now(agenda, AgendaFormat::Native, &places, language);
            for fault in checked.errors.iter().chain(&checked.warnings) {
                assert!(!fault.detail.contains(['{', '}']), "{}", fault.detail);
            }
        }
    }
}

/// What is found although it was not there when the question was called: the chair has left, and so has who spoke.
#[test]
fn who_left_is_missed() {
    let mut agenda = spoil(with("/members/0/presence", json!([{"to": "2026-11-30T10:50:00+03:00"}])), "/questions/1/vote", Value::Null);
    agenda = spoil(agenda, "/questions/1/discussed", json!([{"speaker": "m1", "text": "Поддержал."}]));
    let warnings = vec!["chair-not-there /questions/1".to_owned(), "speaker-not-there /questions/1/discussed/0/speaker".to_owned()];
    assert_eq!(findings(&agenda), (Vec::new(), warnings));
}
