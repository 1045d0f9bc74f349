//! Report files and attachments: opened, streamed into the document store, and compared with what the agenda announces.
//!
//! Each file is a step by itself: a crash costs the files that were on their way. The key holds the announced digest where there is one; otherwise the question,
//! so that a file is fetched again when its question changes. What has no digest but an ETag is asked for again by every new task, and sent again only if it
//! changed.

mod collect;
mod compare;
mod fetch;
mod wanted;

pub use collect::{CollectedFile, CollectedFiles, collect, note_in};
pub use wanted::{Slot, count};

use super::{
    documents::DocumentStore,
    settings::Settings,
    source::{Source, upstream::Upstream},
};

/// Where files come from and go to.
#[derive(Debug, Clone, Copy)]
pub struct FileRoom<'a> {
    pub source: &'a Source,
    /// For links that lead out of a folder.
    pub outside: &'a Upstream,
    pub store: &'a DocumentStore,
    pub settings: &'a Settings,
}
