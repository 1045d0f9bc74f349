//! Formats in which an agenda may come. An adapter turns a source's bytes into the one model of [`crate::domain::agenda`], or into everything that is wrong with
//! them at once.

pub mod agenda_format;
pub mod json_text;
pub mod native;
pub mod parsed;
pub mod reader;

pub use agenda_format::{AgendaFormat, Datum};
pub use parsed::Parsed;
