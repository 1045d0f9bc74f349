//! The canonical form of an agenda, its hash, and the keys of steps.
//!
//! A snapshot holds what documents depend on and nothing else, with sorted keys: the same meeting gives the same bytes however its source writes it. Statuses
//! are not in it, because a question that goes from REPORT_SIGNED to PROTECTED once its protocol is done must not make that protocol a stale one.

use super::documents::hex;
use crate::domain::agenda::Agenda;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Changes whenever the same agenda would be collected, checked or recorded differently: part of every key, so that nothing made by an older generator is
/// taken for done.
pub const GENERATOR_VERSION: &str = "3";

/// A canonical agenda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// JSON with sorted keys.
    pub json: String,
    /// Its SHA-256, lower-case hex.
    pub digest: String,
}

impl Snapshot {
    #[must_use]
    pub fn of(agenda: &Agenda) -> Self {
        let json = canonical(value(agenda));
        let digest = hex(&Sha256::digest(&json));
        Self { json, digest }
    }
}

fn value(agenda: &Agenda) -> Value {
    let mut value = serde_json::to_value(agenda).expect("the model is plain data with text keys, which always serializes");
    if let Some(agenda) = value.as_object_mut() {
        agenda.remove("revision");
        agenda.remove("sampleDelay");
        for question in agenda.get_mut("questions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(question) = question.as_object_mut() {
                question.remove("status");
            }
        }
    }
    value
}

/// JSON with sorted keys and no white space.
#[must_use]
pub fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// The key of a step: a hash of its inputs and of the generator's version. Each part goes in with its length, so that no two lists of parts run together.
#[must_use]
pub fn step_key(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in [&[GENERATOR_VERSION], parts].concat() {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"b":{"y":1,"x":[{"d":1,"c":2}]},"a":null}"#).unwrap();
        assert_eq!(canonical(one), r#"{"a":null,"b":{"x":[{"c":2,"d":1}],"y":1}}"#);
    }

    #[test]
    fn parts_of_a_key_do_not_run_together() {
        assert_ne!(step_key(&["ab", "c"]), step_key(&["a", "bc"]));
        assert_ne!(step_key(&["ab"]), step_key(&["ab", ""]));
        assert_eq!(step_key(&["ab"]), step_key(&["ab"]));
    }
}
