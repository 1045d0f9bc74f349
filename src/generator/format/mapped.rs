//! Any JSON, made ours by a jq program of the operator's: `agenda.mapping`. Faults that are found later point into what the program gave.

use crate::{
    base::{clock::Clock, jq},
    domain::{agenda::Language, failure::Fault},
    generator::words::{Words, short},
};
use serde_json::Value;

const FAILED: Words = Words {
    ru: "agenda.mapping не справляется с этой повесткой: {reason}. Её начало: {start}",
    en: "agenda.mapping cannot handle this agenda: {reason}. It begins with {start}",
    de: "agenda.mapping kann diese Tagesordnung nicht umwandeln: {reason}. Sie beginnt mit {start}",
};

/// Runs the program.
///
/// # Errors
/// The one fault: what the interpreter says, and what the agenda begins with.
pub async fn map(program: &jq::Program, clock: &Clock, value: &Value, language: Language) -> Result<Value, Fault> {
    let text = value.to_string();
    let failed = |reason: String| Fault {
        code: "mapping-failed".to_owned(),
        pointer: String::new(),
        detail: FAILED.say(language, &[("reason", &reason), ("start", &short(&text))]),
    };
    let output = program.run(clock, text.clone().into_bytes()).await.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&output).map_err(|error| failed(error.to_string()))
}
