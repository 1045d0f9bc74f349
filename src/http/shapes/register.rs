//! A register of protocol numbers as clients see it.

use crate::domain::{
    ids::AgendaId,
    register::{Gap, Register},
};
use serde::Serialize;
use utoipa::ToSchema;

/// The numbers of one body and year. A number is given once and kept for ever.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "body": "Город Приозёрск — Совета депутатов", "year": 2026, "given": 17,
    "unused": [{ "number": "9", "agendaId": "council-09" }], "missing": [{ "from": 11, "to": 12 }]
}))]
pub struct RegisterShape {
    pub body: String,
    pub year: i16,
    /// How many were given out.
    pub given: usize,
    /// Given to an agenda of which no protocol bears it: its task failed after that, or still runs.
    pub unused: Vec<UnusedNumber>,
    /// Numbers between the lowest and the highest that no agenda was given.
    pub missing: Vec<NumberRange>,
}

/// A number without a protocol.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnusedNumber {
    pub number: String,
    #[schema(value_type = String)]
    pub agenda_id: AgendaId,
}

/// From one number to another, both included.
#[derive(Debug, Serialize, ToSchema)]
pub struct NumberRange {
    pub from: u64,
    pub to: u64,
}

impl From<&Register> for RegisterShape {
    fn from(register: &Register) -> Self {
        let unused = register.unused().map(|entry| UnusedNumber { number: entry.number.clone(), agenda_id: entry.agenda_id.clone() });
        Self {
            body: register.body.clone(),
            year: register.year,
            given: register.entries.len(),
            unused: unused.collect(),
            missing: register.gaps().into_iter().map(|Gap { from, to }| NumberRange { from, to }).collect(),
        }
    }
}
