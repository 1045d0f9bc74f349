//! Whether every document is there and is what it was: read whole and hashed, a piece at a time; and which files nothing refers to.
//!
//! Memory stays flat: blobs come from the database in pages, files from the store as a stream, and of what is wrong only so many are named.

use super::{bar::Bar, database, finding::Finding, store};
use crate::{
    base::{chain::chain, config::Config},
    generator::{
        documents::{DocumentStore, StoreError, hex},
        orphans::named_in,
    },
    store::{
        self as db,
        document::{self, Blob},
        look::{Look, lacks_table},
        step_cache,
    },
};
use futures::TryStreamExt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

const PAGE: usize = 500;
/// Files without a document that are compared with the steps at once.
const AT_ONCE: usize = 10_000;
/// So many of each kind are named; all are counted.
pub(super) const NAMED: usize = 1000;

/// Blobs of one kind.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Blobs {
    pub(super) count: u64,
    /// The first of them.
    pub(super) blobs: Vec<String>,
}

impl Blobs {
    fn add(&mut self, blob: String) {
        self.count += 1;
        if self.blobs.len() < NAMED {
            self.blobs.push(blob);
        }
    }
}

/// What was found in the store.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Looked {
    /// Blobs of documents that were read.
    pub(super) whole: u64,
    pub(super) missing: Blobs,
    /// Their content is not what was stored.
    pub(super) altered: Blobs,
    /// Neither a document nor a step refers to them.
    pub(super) unreferenced: Blobs,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Database(#[from] db::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Looks at all documents; nothing is changed.
pub(super) async fn check(config: &Config) -> (Finding, Option<Looked>) {
    if let Some(folder) = store::missing_folder(config) {
        let found = format!("there is no document store at {}", folder.display());
        return (Finding::skipped(found), None);
    }
    let documents = match DocumentStore::open(&config.documents, &config.data_dir) {
        Ok(documents) => documents,
        Err(error) => return (Finding::failed(chain(&error), "See the finding on the store first."), None),
    };
    let mut look = match database::open(config).await {
        Ok(look) => look,
        Err(_see_database) => return (Finding::skipped(database::NEEDS_DATABASE), None),
    };
    let looked = look_at_all(&mut look, &documents).await;
    let is_overtaken = look.is_overtaken();
    look.close().await;
    if is_overtaken {
        return (
            Finding::failed(
                "a service has started meanwhile, so what was read may be old",
                "Run it again: it works beside a server that is there from the beginning.",
            ),
            None,
        );
    }
    match looked {
        Ok(looked) => (judge(&looked), Some(looked)),
        Err(Error::Database(error)) if lacks_table(&error) => (Finding::skipped("the database has no documents yet"), None),
        Err(error) => (
            Finding::failed(
                chain(&error),
                "Not all documents could be looked at: see the findings on the database and the store, and run it again.",
            ),
            None,
        ),
    }
}

fn judge(looked: &Looked) -> Finding {
    let Looked { whole, missing, altered, unreferenced } = looked;
    let unreferenced = match unreferenced.count {
        0 => String::new(),
        count => format!("; nothing refers to {count} files, which is no fault: the service deletes them when they are a day old"),
    };
    if missing.count + altered.count == 0 {
        return Finding::ok(format!("{whole} documents' files are whole{unreferenced}"));
    }
    let found = format!("{} missing, {} altered, {whole} whole{unreferenced}", missing.count, altered.count);
    Finding::failed(
        found,
        "Restore the named files from a backup of the documents that is as new as the database or newer, and run it again; what cannot be restored is made \
         anew by generating the agenda again.",
    )
}

async fn look_at_all(look: &mut Look, store: &DocumentStore) -> Result<Looked, Error> {
    let mut looked = Looked::default();
    let bar = Bar::new(document::count_blobs(&mut look.tx()).await?, "reading documents");
    let mut after = String::new();
    loop {
        let page = document::page(&mut look.tx(), &after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.blob);
        for blob in page {
            match read(store, &blob).await? {
                None => looked.missing.add(blob.blob),
                Some(false) => looked.altered.add(blob.blob),
                Some(true) => looked.whole += 1,
            }
            bar.step();
        }
    }
    bar.clear();
    unreferenced(look, store, &mut looked.unreferenced).await?;
    Ok(looked)
}

/// Whether its content is what was stored; `None`: it is not there.
async fn read(store: &DocumentStore, blob: &Blob) -> Result<Option<bool>, Error> {
    let Some(mut pieces) = store.get(&blob.blob, None).await? else { return Ok(None) };
    let (mut digest, mut bytes) = (Sha256::new(), 0_u64);
    loop {
        match pieces.try_next().await {
            Ok(Some(piece)) => {
                digest.update(&piece);
                bytes += piece.len() as u64;
            }
            Ok(None) => return Ok(Some(u64::try_from(blob.bytes) == Ok(bytes) && hex(&digest.finalize()) == blob.sha256)),
            // Cut off while it is read, or on a sector that is gone: what can be read of it is not what was stored.
            Err(_) => return Ok(Some(false)),
        }
    }
}

async fn unreferenced(look: &mut Look, store: &DocumentStore, found: &mut Blobs) -> Result<(), Error> {
    let bar = Bar::new(0, "looking for files that nothing refers to");
    let mut files = store.list();
    let mut suspects = HashSet::new();
    loop {
        let mut page = Vec::with_capacity(PAGE);
        while page.len() < PAGE
            && let Some((blob, _)) = files.try_next().await?
        {
            page.push(blob);
            bar.step();
        }
        let is_last = page.len() < PAGE;
        let documents = document::blobs_among(&mut look.tx(), &page).await?;
        suspects.extend(page.into_iter().filter(|blob| !documents.contains(blob)));
        if is_last || suspects.len() >= AT_ONCE {
            keep_what_steps_name(look, &mut suspects).await?;
            let mut named: Vec<String> = suspects.drain().collect();
            named.sort_unstable();
            for blob in named {
                found.add(blob);
            }
        }
        if is_last {
            bar.clear();
            return Ok(());
        }
    }
}

/// Steps name their blobs within their outputs, so all of them are read, a page at a time.
async fn keep_what_steps_name(look: &mut Look, suspects: &mut HashSet<String>) -> Result<(), Error> {
    let mut after = String::new();
    while !suspects.is_empty() {
        let page = step_cache::page(&mut look.tx(), &after, PAGE).await?;
        for (_, output) in &page {
            for blob in named_in(output) {
                suspects.remove(blob);
            }
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => after.clone_from(key),
            _ => return Ok(()),
        }
    }
    Ok(())
}
