//! The published schema of our agenda format is the one that the types have, and the documented example is an agenda without a fault.

use crate::support::agendas::findings;
use protocol_bridge::domain::agenda::Agenda;

const SCHEMA: &str = include_str!("../../docs/agenda.schema.json");
const PAGE: &str = include_str!("../../docs/agenda.md");

#[test]
fn the_schema_is_that_of_the_types() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Agenda)).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agenda.schema.json");
        std::fs::write(path, &schema).expect("the schema is written");
    }
    assert!(SCHEMA == schema, "docs/agenda.schema.json is not that of the types; run the test with UPDATE_SCHEMA=1 to write it anew");
}

#[test]
fn the_documented_example_is_an_agenda_without_a_fault() {
    let example = PAGE.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the page has an example");
    let example = serde_json::from_str(example).expect("the example is JSON");
    assert_eq!(findings(&example), (Vec::new(), Vec::new()));
}

#[test]
fn every_rule_is_documented() {
    for rule in protocol_bridge::generator::rules::RULES {
        assert!(PAGE.contains(&format!("`{}`", rule.code)), "docs/agenda.md does not name {}", rule.code);
    }
}
