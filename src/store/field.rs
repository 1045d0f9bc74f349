//! From stored columns to values that cannot be wrong: one that does not fit is told with table, column and row.

use super::{Error, Result};
use std::fmt::Display;

/// The row whose columns are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<Id> {
    pub(super) table: &'static str,
    pub(super) row: Id,
}

impl<Id: Display> Fields<Id> {
    /// The parsed value of a column.
    pub(super) fn fit<T, E: Display>(&self, column: &'static str, parsed: std::result::Result<T, E>) -> Result<T> {
        parsed.map_err(|error| Error::Corrupt { table: self.table, column, row: self.row.to_string(), reason: error.to_string() })
    }
}
