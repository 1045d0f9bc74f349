//! What an adapter made of a source's bytes.

use super::AgendaFormat;
use crate::domain::{agenda::Agenda, failure::Fault};

/// An agenda as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// In which the bytes came.
    pub format: AgendaFormat,
    /// With those questions that could be read; `None` if the rest could not.
    pub agenda: Option<Agenda>,
    /// For each question in `agenda` its place in the source's list, so that pointers name the right one.
    pub places: Vec<usize>,
    /// Everything that could not be read.
    pub faults: Vec<Fault>,
    /// What was left out.
    pub warnings: Vec<Fault>,
    /// What a foreign agenda became in our own format: pointers of rules point into this.
    pub mapped: Option<serde_json::Value>,
}
