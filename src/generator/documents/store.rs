//! The store itself: what can be asked of it.

use super::{
    BlobWriter, StoreError,
    key::{BLOBS, Stored},
    place::Place,
    verified::verified,
};
use crate::{base::config, domain::time::Timestamp, generator::compute};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, path::Path as Key};
use sha2::{Digest as _, Sha256};
use std::{env, io, ops::Range, path::Path, sync::Arc};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The store; cheap to clone.
#[derive(Debug, Clone)]
pub struct DocumentStore {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Where it is, for people.
    place: Arc<str>,
    /// The folder for what is on its way into the store.
    pub(super) scratch: Arc<Path>,
}

/// The file beside the blobs that holds the store's own id.
const ID: &str = "store-id";

impl DocumentStore {
    /// Opens the store that is configured; a folder is made if it is not there. That a store elsewhere does not answer is told by the first request.
    ///
    /// # Errors
    /// When a folder cannot be made, or what is configured is no store.
    pub fn open(config: &config::Documents, data_dir: &Path) -> Result<Self, StoreError> {
        let place = match config.place(data_dir) {
            config::DocumentsPlace::Folder(folder) => Place::folder(&folder)?,
            config::DocumentsPlace::Bucket { bucket, prefix } => Place::bucket(config, &bucket, &prefix)?,
        };
        Ok(Self::at(place, &data_dir.join("tmp")))
    }

    /// A store in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn in_folder(folder: &Path) -> Result<Self, StoreError> {
        Ok(Self::at(Place::folder(folder)?, &env::temp_dir()))
    }

    fn at(place: Place, scratch: &Path) -> Self {
        Self { objects: place.objects, place: place.name.into(), scratch: scratch.into() }
    }

    /// Where it is, for people.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The id by which a database knows this store, if it was given one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn id(&self) -> Result<Option<String>, StoreError> {
        let text = self.read(ID).await?;
        Ok(text.map(|text| String::from_utf8_lossy(&text).trim().to_owned()))
    }

    /// Gives the store an id unless it has one, and answers the one that it has: of several who try at once, all get the same.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn give_id(&self, id: &str) -> Result<String, StoreError> {
        let text = PutPayload::from(format!("{id}\n").into_bytes());
        match self.objects.put_opts(&Key::from(ID), text, PutMode::Create.into()).await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.id().await?.unwrap_or_else(|| id.to_owned()))
    }

    /// Whether it holds no document.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.objects.list(Some(&Key::from(BLOBS))).next().await.transpose()?.is_none())
    }

    /// Stores bytes under their own digest; storing the same again is no error.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn put(&self, bytes: Bytes) -> Result<Stored, StoreError> {
        let whole = bytes.clone();
        let stored = compute(move || Stored::new(&Sha256::digest(&whole), whole.len() as u64)).await;
        self.objects.put(&Key::from(stored.blob.as_str()), PutPayload::from_bytes(bytes)).await?;
        Ok(stored)
    }

    /// Begins a blob that arrives in pieces. It lies in an unnamed temporary file until its digest, and so its key, is known.
    ///
    /// # Errors
    /// When there is no room for it.
    pub async fn writer(&self) -> Result<BlobWriter, StoreError> {
        BlobWriter::begin(self.clone()).await
    }

    /// Reads a blob whole, or a range of it as a stream; `None` if it is not there. A whole one is compared with its key: the stream of one that is not what was
    /// stored ends with an error.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, blob: &str, range: Option<Range<u64>>) -> Result<Option<BoxStream<'static, io::Result<Bytes>>>, StoreError> {
        let is_whole = range.is_none();
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        match self.objects.get_opts(&Key::from(blob), options).await {
            Ok(result) => {
                let content = result.into_stream().map(|piece| piece.map_err(io::Error::other));
                Ok(Some(if is_whole { verified(blob, content).boxed() } else { content.boxed() }))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A blob whole, in memory: for what is known to be small.
    ///
    /// # Errors
    /// When the store fails, or the blob is not what was stored.
    pub async fn read(&self, blob: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(mut pieces) = self.get(blob, None).await? else { return Ok(None) };
        let mut whole = Vec::new();
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(Some(whole.into()))
    }

    /// Every blob and when it was last put, in no order.
    pub fn list(&self) -> BoxStream<'static, Result<(String, Timestamp), StoreError>> {
        self.objects
            .list(Some(&Key::from(BLOBS)))
            .map_ok(|found| (found.location.to_string(), Timestamp::from_micros(found.last_modified.timestamp_micros())))
            .map_err(StoreError::from)
            .boxed()
    }

    /// When a blob was last put; `None` if it is not there.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn modified(&self, blob: &str) -> Result<Option<Timestamp>, StoreError> {
        match self.objects.head(&Key::from(blob)).await {
            Ok(found) => Ok(Some(Timestamp::from_micros(found.last_modified.timestamp_micros()))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a blob; one that is gone already is no error.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete(&self, blob: &str) -> Result<(), StoreError> {
        match self.objects.delete(&Key::from(blob)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies a blob into a file; `false` if it is not there.
    ///
    /// # Errors
    /// When the store fails, the blob is not what was stored, or the file cannot be written.
    pub async fn copy_to(&self, blob: &str, path: &Path) -> Result<bool, StoreError> {
        let Some(mut pieces) = self.get(blob, None).await? else { return Ok(false) };
        let mut file = tokio::fs::File::create(path).await?;
        while let Some(piece) = pieces.next().await {
            file.write_all(&piece?).await?;
        }
        file.flush().await?;
        Ok(true)
    }

    /// Stores a file's content without holding it in memory.
    ///
    /// # Errors
    /// When the store fails or the file cannot be read.
    pub async fn put_file(&self, path: &Path) -> Result<Stored, StoreError> {
        let mut writer = self.writer().await?;
        let mut file = tokio::fs::File::open(path).await?;
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).await?;
            if read == 0 {
                return writer.finish().await;
            }
            writer.write(&piece[..read]).await?;
        }
    }
}

/// How much of a file is in memory at once.
const PIECE: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, DocumentStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = DocumentStore::in_folder(&folder.path().join("made")).unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn a_blob_is_found_under_its_digest_and_putting_it_again_is_no_error() {
        let (_folder, store) = store();
        let stored = store.put(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(stored.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(stored.blob, format!("sha256/ba/{}", stored.sha256));
        assert_eq!(store.put(Bytes::from_static(b"abc")).await.unwrap(), stored);
        assert_eq!(store.read(&stored.blob).await.unwrap().unwrap(), "abc");
        assert!(store.read("sha256/00/00").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_range_is_a_part_of_the_blob() {
        let (_folder, store) = store();
        let stored = store.put(Bytes::from_static(b"0123456789")).await.unwrap();
        let part: Vec<Bytes> = store.get(&stored.blob, Some(2..5)).await.unwrap().unwrap().try_collect().await.unwrap();
        assert_eq!(part.concat(), b"234");
    }

    #[tokio::test]
    async fn what_is_not_what_was_stored_is_an_error() {
        let (folder, store) = store();
        let stored = store.put(Bytes::from_static(b"abc")).await.unwrap();
        std::fs::write(folder.path().join("made").join(&stored.blob), "abd").unwrap();
        assert!(matches!(store.read(&stored.blob).await, Err(StoreError::Altered { .. })));
        assert!(matches!(store.copy_to(&stored.blob, &folder.path().join("copy")).await, Err(StoreError::Altered { .. })));
        // Nothing is known about a part.
        let part: Vec<Bytes> = store.get(&stored.blob, Some(0..1)).await.unwrap().unwrap().try_collect().await.unwrap();
        assert_eq!(part.concat(), b"a");
    }

    #[tokio::test]
    async fn large_blobs_go_in_parts_and_come_out_whole() {
        let (folder, store) = store();
        let mut writer = store.writer().await.unwrap();
        let piece = vec![7_u8; 3 * 1024 * 1024];
        for _ in 0..4 {
            writer.write(&piece).await.unwrap();
        }
        assert_eq!(writer.bytes(), 12 * 1024 * 1024);
        let stored = writer.finish().await.unwrap();
        let copy = folder.path().join("copy");
        assert!(store.copy_to(&stored.blob, &copy).await.unwrap());
        assert_eq!(std::fs::read(&copy).unwrap(), piece.repeat(4));
        assert_eq!(store.put_file(&copy).await.unwrap(), stored);
    }
}
