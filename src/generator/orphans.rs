//! Takes blobs away that nothing refers to: what a crash left between a put and the row that was to name it, and what steps and documents that are gone had.
//!
//! A blob goes when it is older than a day and no document and no step referred to it at two looks at least an hour apart: longer than any attempt holds on to a
//! step that has just been forgotten. A put always puts, so content that is used again is young again. Every replica looks; deleting twice does no harm, and a
//! crash in the middle leaves the rest to the next look.
//!
//! A folder that belongs to another database looks as if nothing referred to it. So the two know each other by an id, given when the store was empty or held a
//! document that the database knows; without it nothing is deleted.

use super::documents::{DocumentStore, StoreError};
use crate::{
    base::{
        chain::chain,
        clock::{Clock, Monotonic},
        entropy::Entropy,
        shutdown::Shutdown,
        supervisor,
    },
    domain::time::Timestamp,
    store::{self, Db, document, setting, step_cache},
};
use futures::{FutureExt as _, TryStreamExt as _};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

const PERIOD: Duration = Duration::from_hours(1);
const YOUNG: Duration = Duration::from_hours(24);
/// Blobs that one look takes up at most; the others come next time.
const MOST: usize = 10_000;
const PAGE: usize = 500;
const SETTING: &str = "document_store";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Documents(#[from] StoreError),
    #[error(transparent)]
    Store(#[from] store::Error),
}

pub struct Orphans {
    db: Db,
    store: DocumentStore,
    clock: Clock,
    entropy: Entropy,
    /// Blobs that nothing referred to when last looked at, and since when.
    seen: Mutex<HashMap<String, Monotonic>>,
}

impl std::fmt::Debug for Orphans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orphans").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Orphans {
    #[must_use]
    pub fn new(db: Db, store: DocumentStore, clock: Clock, entropy: Entropy) -> Self {
        Self { db, store, clock, entropy, seen: Mutex::default() }
    }

    /// Looks every hour, not in step with other replicas, until the process drains.
    pub fn start(self, shutdown: &Shutdown) {
        let (clock, orphans, soft) = (self.clock.clone(), Arc::new(self), shutdown.soft().clone());
        supervisor::spawn(&clock, shutdown, "orphaned blobs", move || Arc::clone(&orphans).run(soft.clone()));
    }

    async fn run(self: Arc<Self>, soft: CancellationToken) {
        loop {
            let wait = PERIOD + PERIOD.mul_f64(self.entropy.fraction() / 4.0);
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = soft.cancelled() => return,
            }
            match self.tick().await {
                Ok(0) => {}
                Ok(blobs) => tracing::info!(blobs, "blobs that nothing refers to are deleted"),
                Err(error) => tracing::warn!(error = chain(&error), "orphaned blobs cannot be looked for"),
            }
        }
    }

    /// One look; answers how many blobs were deleted.
    ///
    /// # Errors
    /// When the store or the database fails; what was not deleted is looked at again.
    pub async fn tick(&self) -> Result<usize, Error> {
        let now = self.clock.monotonic();
        let mut old = self.old().await?;
        if !self.belongs_to_the_database(&old).await? {
            return Ok(0);
        }
        self.keep_what_is_referred_to(&mut old).await?;
        let ripe: Vec<String> = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.retain(|blob, _| old.contains(blob));
            for blob in &old {
                seen.entry(blob.clone()).or_insert(now);
            }
            seen.iter().filter(|(_, since)| now.since(**since) >= PERIOD).map(|(blob, _)| blob.clone()).collect()
        };
        let mut deleted = 0;
        for blob in ripe {
            // It may have been put again since it was listed.
            if self.store.modified(&blob).await?.is_some_and(|at| self.is_old(at)) {
                self.store.delete(&blob).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    fn is_old(&self, modified: Timestamp) -> bool {
        modified < self.clock.now() - YOUNG
    }

    async fn old(&self) -> Result<HashSet<String>, Error> {
        let mut blobs = self.store.list();
        let mut old = HashSet::new();
        while let Some((blob, modified)) = blobs.try_next().await? {
            if self.is_old(modified) {
                old.insert(blob);
                if old.len() >= MOST {
                    break;
                }
            }
        }
        Ok(old)
    }

    /// Whether store and database hold the same id, or may be given one now.
    async fn belongs_to_the_database(&self, old: &HashSet<String>) -> Result<bool, Error> {
        let known = self.db.read("orphaned_blobs", |tx| async move { setting::get(tx, SETTING).await }.boxed()).await?;
        match (known, self.store.id().await?) {
            (Some(known), Some(id)) => Ok(known == id),
            (None, None) => {
                let related =
                    old.is_empty() && self.store.list().try_next().await?.is_none() || !self.documents_among(old).await?.is_empty();
                if !related {
                    return Ok(false);
                }
                let id: uuid::Uuid = self.entropy.id(self.clock.now());
                // The store first, as at start: whoever finds an id in the database finds it in the store, too.
                let given: Arc<str> = self.store.give_id(&id.to_string()).await?.into();
                let wanted = Arc::clone(&given);
                let work = store::work(move |tx| {
                    let wanted = Arc::clone(&wanted);
                    async move { setting::put_if_absent(tx, SETTING, &wanted).await }.boxed()
                });
                Ok(self.db.transaction("orphaned_blobs", work).await? == *given)
            }
            // Of two replicas the other is between the two writes, or they do not belong together.
            _ => Ok(false),
        }
    }

    async fn documents_among(&self, blobs: &HashSet<String>) -> Result<HashSet<String>, Error> {
        let list: Arc<[String]> = blobs.iter().cloned().collect();
        let work = store::work(move |tx| {
            let list = Arc::clone(&list);
            async move { document::blobs_among(tx, &list).await }.boxed()
        });
        Ok(self.db.read("orphaned_blobs", work).await?)
    }

    async fn keep_what_is_referred_to(&self, blobs: &mut HashSet<String>) -> Result<(), Error> {
        for blob in self.documents_among(blobs).await? {
            blobs.remove(&blob);
        }
        // Steps name their blobs within their outputs, so all of them are read, a page at a time.
        let mut after: Arc<str> = "".into();
        while !blobs.is_empty() {
            let work = store::work(move |tx| {
                let after = Arc::clone(&after);
                async move { step_cache::page(tx, &after, PAGE).await }.boxed()
            });
            let page = self.db.read("orphaned_blobs", work).await?;
            for (_, output) in &page {
                for blob in named_in(output) {
                    blobs.remove(blob);
                }
            }
            match page.last() {
                Some((key, _)) if page.len() == PAGE => after = key.as_str().into(),
                _ => break,
            }
        }
        Ok(())
    }
}

/// The keys of blobs in a step's output.
pub fn named_in(output: &str) -> impl Iterator<Item = &str> {
    const KEY: usize = "sha256/00/".len() + 64;
    output.match_indices("sha256/").filter_map(|(at, _)| output.get(at..at + KEY))
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn blobs_are_found_wherever_an_output_names_them() {
        let [a, b] = ["ab", "cd"].map(|start| format!("sha256/{start}/{start}{}", "0".repeat(62)));
        let output = format!(r#"{{"blob":"{a}","sha256":"abc","files":[{{"blob":"{b}"}}],"cut":"sha256/ab"}}"#);
        assert_eq!(named_in(&output).collect::<Vec<_>>(), [a, b]);
    }
}
