//! The document: one typed model from which every format is made.
//!
//! The way of a text: [`glyphs`] marks what cannot be printed while the agenda is checked, [`model::DocumentModel::build`] words and orders everything,
//! and the formats ([`mod@html`], [`mod@docx`], the typesetter's PDF) only set what the model says. Nothing here reads a file or the clock; the same agenda gives the same model.

mod annexes;
mod build;
mod dates;
mod docx;
pub mod fonts;
pub mod glyphs;
mod html;
pub mod model;
mod presence;
mod section;
mod text;
mod words;
mod xml;

pub use build::{meeting_date, printed_numbers};
pub use dates::Zone;
pub use docx::docx;
pub use glyphs::{Marked, mark_missing, missing_characters};
pub use html::html;
pub use model::{Annex, DocumentModel, Role, TEMPLATE_VERSION};
