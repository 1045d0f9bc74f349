//! The document store: blobs by the digest of their content, in a folder (fsynced) or in an S3-compatible store.
//!
//! A key is `sha256/ab/abcdef…`, so the same content is stored once and an entry never changes. A put always puts, even when the key exists: whoever collects
//! orphans may be about to delete it. A blob that was put and then not referred to, because of a crash in between, is such an orphan. What is read whole is
//! compared with its key, so a blob that rotted is an error and never somebody's protocol.

mod error;
mod key;
mod place;
mod store;
mod verified;
mod writer;

pub use error::StoreError;
pub use key::{Stored, hex};
pub use store::DocumentStore;
pub use writer::BlobWriter;
