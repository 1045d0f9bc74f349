//! One bad agenda, told at once; which rules apply to which format, and the table of it in the documentation.

use crate::support::agendas::{bad_agenda, read, told};
use protocol_bridge::{
    domain::agenda::Language,
    generator::{
        check::check_now,
        format::AgendaFormat,
        rules::{RULES, Severity, not_applicable},
    },
};
use std::{collections::BTreeSet, fmt::Write as _, fs};

/// A deliberately bad agenda: twelve different faults in nine questions, and one answer names them all and nothing else.
#[test]
fn twelve_faults_in_nine_questions_are_told_at_once() {
    let (agenda, places) = read(&bad_agenda());
    let checked = check_now(agenda, AgendaFormat::Native, &places, Language::Ru);
    let mut found = told(&checked.errors);
    found.sort();
    let mut want = vec![
        "unknown-person /questions/0/rapporteur",
        "text-missing /questions/0/decision/0/text",
        "voted-twice /questions/1/vote/named/2/member",
        "voter-recused /questions/2/vote/named/3/member",
        "votes-do-not-add-up /questions/3/vote",
        "secret-ballot-with-names /questions/4/vote/named",
        "ballot-papers-do-not-add-up /questions/4/vote/papers/issued",
        "decision-against-the-vote /questions/5/outcome/category",
        "nothing-decided /questions/6/decision",
        "decision-numbering /questions/7/decision/0/number",
        "date-unreadable /questions/7/decision/0/due",
        "time-outside-sitting /questions/8/start",
    ];
    want.sort_unstable();
    assert_eq!(found, want);
    let codes: BTreeSet<&str> = want.iter().filter_map(|told| told.split(' ').next()).collect();
    assert_eq!(codes.len(), 12, "each is another one");
    for fault in &checked.errors {
        let place = fault.pointer.split('/').nth(2).and_then(|place| place.parse::<usize>().ok()).expect("a question's pointer");
        assert!(fault.detail.starts_with(&format!("Вопрос {} «Вопрос {}»: ", place + 1, place + 1)), "{}", fault.detail);
    }
}

/// A rule is left out where the format has nothing for it to look at, and said to be; where most bodies leave an outcome out, its absence is a warning.
#[test]
fn what_a_format_cannot_carry_is_not_checked() {
    let (agenda, places) = read(&bad_agenda());
    for format in AgendaFormat::ALL {
        let checked = check_now(agenda.clone(), format, &places, Language::Ru);
        let is_ours = matches!(format, AgendaFormat::Native | AgendaFormat::Mapped);
        let left_out = not_applicable(format);
        assert_eq!(left_out.is_empty(), is_ours, "{format:?}: {left_out:?}");
        for fault in checked.errors.iter().chain(&checked.warnings) {
            assert!(!left_out.contains(&fault.code.as_str()), "{format:?}: {fault:?}");
        }
        let undecided = "nothing-decided /questions/6/decision".to_owned();
        assert_eq!(told(&checked.errors).contains(&undecided), is_ours, "{format:?}");
        assert_eq!(told(&checked.warnings).contains(&undecided), !is_ours, "{format:?}");
    }
}

/// `UPDATE_DOCS=1` writes the table anew.
#[test]
fn the_documentation_says_which_rule_applies_to_which_format() {
    const BEGIN: &str = "<!-- rules: written by tests/it/generator_bad_agenda.rs, UPDATE_DOCS=1 -->\n";
    const END: &str = "<!-- end of rules -->";
    let mut table = format!("| rule | {} |\n| --- |{}\n", AgendaFormat::ALL.map(AgendaFormat::as_str).join(" | "), " --- |".repeat(4));
    let codes: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    for code in codes {
        let cells = AgendaFormat::ALL.map(|format| {
            let rule = RULES.iter().find(|rule| rule.code == code && rule.applies_to(format));
            match rule.map(|rule| rule.severity_in(format)) {
                Some(Severity::Error) => "error",
                Some(Severity::Warning) => "warning",
                None => "not applicable",
            }
        });
        writeln!(table, "| `{code}` | {} |", cells.join(" | ")).expect("a text grows");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agenda.md");
    let text = fs::read_to_string(path).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning is marked");
    let (listed, after) = rest.split_once(END).expect("the end is marked");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).expect("the page can be written");
    } else {
        assert_eq!(listed, table, "run this test with UPDATE_DOCS=1");
    }
}
