//! Formats in which an agenda may come. An adapter turns a source's bytes into the one model of [`crate::domain::agenda`], or into everything that is wrong with
//! them at once. Foreign formats (`oparl`, `legistar`, `mapped`) become our own first, and are read as that.

pub mod agenda_format;
pub mod foreign;
pub mod json_text;
pub mod legistar;
pub mod mapped;
pub mod native;
pub mod oparl;
pub mod parsed;
pub mod plain_text;
pub mod read;
pub mod reader;
pub mod references;

pub use agenda_format::{AgendaFormat, Datum};
pub use parsed::Parsed;
pub use read::Formats;
