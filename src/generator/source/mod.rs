//! Where agendas come from. A source answers `fetch(agendaId) → bytes + revision`, lists what it has, and opens files that an agenda refers to.
//!
//! No source ever opens what lies outside it: samples are in the binary, a folder's files stay in the folder whatever a name or a link says, and HTTP goes to the
//! configured origin and to `agenda.allowed_hosts` only, the token to the origin alone.

pub mod agenda_source;
pub mod error;
pub mod folder;
pub mod hosts;
pub mod http;
pub mod samples;
pub mod upstream;
mod upstream_error;

pub use agenda_source::{Address, Fetched, Linked, Opened, OpenedFile, Source};
pub use error::{LinkError, SourceError};
