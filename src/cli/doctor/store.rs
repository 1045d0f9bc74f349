//! Whether the document store can be written, read and deleted from, and whether it is this database's.

use super::{database, finding::Finding, folder::obstacle};
use crate::{
    app::STORE_ID_SETTING,
    base::{
        chain::chain,
        clock::Clock,
        config::{Config, DocumentsPlace},
        entropy::Entropy,
    },
    generator::documents::{DocumentStore, StoreError},
    store::{look::lacks_table, setting},
};
use std::path::PathBuf;
use uuid::Uuid;

const LET_US_WRITE: &str = "Let the service's user read and write the folder, and see whether the disk is full or read-only.";
const LET_US_IN: &str = "Start the store, make the bucket, and let documents.s3_access_key_id get, put, delete and list in it; tasks are tried again until \
                         their attempts are used up.";

/// The folder in which the configured store is, if it is in one.
pub(super) fn folder(config: &Config) -> Option<PathBuf> {
    match config.documents.place(&config.data_dir) {
        DocumentsPlace::Folder(folder) => Some(folder),
        DocumentsPlace::Bucket { .. } => None,
    }
}

/// The folder of the store, if that is where it should be and there is none.
pub(super) fn missing_folder(config: &Config) -> Option<PathBuf> {
    folder(config).filter(|folder| !folder.exists())
}

pub(super) async fn check(config: &Config, clock: &Clock, entropy: &Entropy) -> Finding {
    if let Some(folder) = missing_folder(config) {
        if let Some(obstacle) = obstacle(&folder) {
            return Finding::failed(obstacle, LET_US_WRITE);
        }
        let found = format!("there is no document store at {} yet", folder.display());
        return Finding::warning(
            found,
            "The first start of the service makes it; if there should be one, it is not mounted, or documents.store points elsewhere.",
        );
    }
    let store = match DocumentStore::open(&config.documents, &config.data_dir) {
        Ok(store) => store,
        Err(error) => return unusable(config, &error),
    };
    match probe(&store, clock, entropy).await {
        Ok(true) => {}
        Ok(false) => {
            return Finding::failed("what was written does not come back", "The store loses data: look at the disk and its file system.");
        }
        Err(error) => return unusable(config, &error),
    }
    match store.id().await {
        Ok(theirs) => belongs(config, &store, theirs).await,
        Err(error) => unusable(config, &error),
    }
}

fn unusable(config: &Config, error: &StoreError) -> Finding {
    Finding::failed(chain(error), if folder(config).is_some() { LET_US_WRITE } else { LET_US_IN })
}

/// Writes a blob that nothing else can be, reads it and takes it away.
async fn probe(store: &DocumentStore, clock: &Clock, entropy: &Entropy) -> Result<bool, StoreError> {
    let id: Uuid = entropy.id(clock.now());
    let text = format!("protocol-bridge doctor was here: {id}");
    let stored = store.put(text.clone().into_bytes().into()).await?;
    let read = store.read(&stored.blob).await?;
    store.delete(&stored.blob).await?;
    let gone = store.modified(&stored.blob).await?.is_none();
    Ok(gone && read.is_some_and(|read| read == text.as_bytes()))
}

async fn belongs(config: &Config, store: &DocumentStore, theirs: Option<String>) -> Finding {
    let place = store.place();
    let works = format!("{place} can be written, read and deleted from");
    let ours = match database::open(config).await {
        Ok(mut look) => {
            let ours = setting::get(&mut look.tx(), STORE_ID_SETTING).await;
            look.close().await;
            match ours {
                Ok(ours) => ours,
                // No service has started on this database.
                Err(error) if lacks_table(&error) => None,
                Err(error) => {
                    return Finding::warning(
                        format!("{works}; whether it is this database's is not known: {}", chain(&error)),
                        "See the finding on the database first.",
                    );
                }
            }
        }
        Err(finding) => {
            return Finding::warning(
                format!("{works}; whether it is this database's is not known: {}", finding.found),
                "See the finding on the database first.",
            );
        }
    };
    match (theirs, ours) {
        (Some(theirs), Some(ours)) if theirs == ours => Finding::ok(format!("{works}, and is this database's")),
        (Some(theirs), Some(ours)) => Finding::failed(
            format!("the documents in {place} belong to another database: they are {theirs}, this database has {ours}"),
            "Point documents.store to this database's documents, or database.url to theirs; the service does not start like this.",
        ),
        (None, Some(ours)) => Finding::failed(
            format!("{place} holds no store-id, and this database has its documents in {ours}"),
            format!("Mount or restore the documents of this database. If they are lost for good, write {ours} into {place}/store-id."),
        ),
        (Some(theirs), None) => match store.is_empty().await {
            Ok(true) => Finding::ok(format!("{works}, and is empty; the first start gives it to this database")),
            _ => Finding::failed(
                format!("the documents in {place} belong to another database ({theirs}), and this one has none"),
                "Point database.url to theirs, or documents.store to an empty folder; the service does not start like this.",
            ),
        },
        (None, None) => Finding::ok(format!("{works}; the first start gives it to this database")),
    }
}
