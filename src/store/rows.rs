//! Rows of values as one bound JSON text: one statement then writes, or matches, any number of rows. A statement costs a round trip on PostgreSQL and a
//! hand-over between threads on SQLite, however little it does.
//!
//! The texts part here: `json_to_recordset(CAST($1 AS json)) AS rows (…)` on PostgreSQL, `value ->> 'name' FROM json_each($1)` on SQLite, where ids, which
//! travel as hex, go through `unhex`.

use serde::Serialize;
use uuid::Uuid;

/// The rows as the text that is bound.
pub(super) fn json(rows: &[impl Serialize]) -> String {
    serde_json::to_string(rows).expect("texts, numbers and nothing else, which always serializes")
}

/// An id within a row, as both databases read it.
pub(super) fn hex(id: Uuid) -> String {
    id.simple().to_string()
}
