//! The document store and the database belong together: both hold the same random id. So two replicas never serve documents from different folders, and a
//! database that was restored, or a folder that was not mounted, is found at start and not by a reader of a protocol.
//!
//! A store and a database that are both new are given an id together, the store first: dying in between leaves an empty store with an id, which counts as new.

use super::StartError;
use crate::{
    base::{clock::Clock, entropy::Entropy},
    generator::documents::DocumentStore,
    store::{Db, setting},
};
use uuid::Uuid;

/// Under which the database keeps the id of its document store.
pub const STORE_ID_SETTING: &str = "document_store";

/// Why the two do not belong together, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    #[error(
        "the documents in {place} belong to another database (they are {theirs}, this database has {ours}): point documents.store to the store of this \
         database, the same one for every replica"
    )]
    Different { place: String, theirs: String, ours: String },
    #[error(
        "the document store {place} is new, but this database has its documents elsewhere (in {ours}): point documents.store there, the same for every \
         replica. If they are lost for good, write {ours} into {place}/store-id and start again"
    )]
    NewStore { place: String, ours: String },
    #[error(
        "the documents in {place} belong to another database (they are {theirs}), and this one is new: point database.url to theirs, or documents.store to \
         an empty folder. To keep them with this database, remove {place}/store-id and start again"
    )]
    NewDatabase { place: String, theirs: String },
}

/// Refuses a store and a database that are strangers, and makes those that are both new belong together.
pub(super) async fn check(documents: &DocumentStore, db: &Db, clock: &Clock, entropy: &Entropy) -> Result<(), StartError> {
    // The database first: whoever finds an id there finds it in the store, too, because that was given it earlier.
    let ours = db.read("document_store", |tx| Box::pin(setting::get(tx, STORE_ID_SETTING))).await.map_err(StartError::Database)?;
    let theirs = documents.id().await?;
    let place = || documents.place().to_owned();
    match (theirs, ours) {
        (Some(theirs), Some(ours)) if theirs == ours => Ok(()),
        (Some(theirs), Some(ours)) => Err(Stranger::Different { place: place(), theirs, ours }.into()),
        (None, Some(ours)) => Err(Stranger::NewStore { place: place(), ours }.into()),
        (Some(theirs), None) if !documents.is_empty().await? => Err(Stranger::NewDatabase { place: place(), theirs }.into()),
        // From before there were ids. Whether this database made them is found by whoever looks for orphaned blobs, and until then none is deleted.
        (None, None) if !documents.is_empty().await? => Ok(()),
        (_, None) => {
            let id: Uuid = entropy.id(clock.now());
            let theirs = documents.give_id(&id.to_string()).await?;
            let wanted = theirs.clone();
            let put = db.transaction("document_store", move |tx| {
                let wanted = wanted.clone();
                Box::pin(async move { setting::put_if_absent(tx, STORE_ID_SETTING, &wanted).await })
            });
            let ours = put.await.map_err(StartError::Database)?;
            if theirs == ours { Ok(()) } else { Err(Stranger::Different { place: place(), theirs, ours }.into()) }
        }
    }
}
