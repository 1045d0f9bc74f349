//! The registers of protocol numbers, for whoever looks after them.

use super::Generator;
use crate::{
    domain::register::Register,
    store::{self, protocol_number},
};

impl Generator {
    /// The registers of a year, by body, after `after`; with the body after which the next page begins.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn registers(&self, year: i16, after: Option<String>, limit: usize) -> store::Result<(Vec<Register>, Option<String>)> {
        let read = self.parts().db.read("list_registers", move |tx| {
            let after = after.clone();
            // One more than asked for tells whether there is a next page.
            Box::pin(async move { protocol_number::registers(tx, year, after.as_deref(), limit.saturating_add(1)).await })
        });
        let mut registers = read.await?;
        let has_more = registers.len() > limit;
        registers.truncate(limit);
        let next = if has_more { registers.last().map(|register| register.body.clone()) } else { None };
        Ok((registers, next))
    }
}
