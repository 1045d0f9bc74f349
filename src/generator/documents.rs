//! The document store: blobs by the digest of their content, in a folder (fsynced) or wherever `object_store` reaches.
//!
//! A key is `sha256/ab/abcdef…`, so the same content is stored once and an entry never changes. A put always puts, even when the key exists: whoever collects
//! orphans may be about to delete it. A blob that was put and then not referred to, because of a crash in between, is such an orphan.

use crate::{base::config, domain::time::Timestamp};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, local::LocalFileSystem, path::Path as Key,
};
use sha2::{Digest as _, Sha256};
use std::{io, ops::Range, path::Path, sync::Arc};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

/// The store; cheap to clone.
#[derive(Debug, Clone)]
pub struct DocumentStore {
    objects: Arc<dyn ObjectStore>,
    /// Where it is, for people.
    place: Arc<str>,
}

/// The file beside the blobs that holds the store's own id.
const ID: &str = "store-id";

/// A blob's digest and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Key of the blob.
    pub blob: String,
    /// Lower-case hex.
    pub sha256: String,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the document store failed")]
pub struct StoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        Self(Box::new(error))
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self(Box::new(error))
    }
}

impl DocumentStore {
    /// Opens the store that is configured; the folder is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be reached or written.
    pub fn open(config: &config::Documents, data_dir: &Path) -> Result<Self, StoreError> {
        let folder = if config.store.is_empty() { data_dir.join("documents") } else { config.store.clone().into() };
        Self::in_folder(&folder)
    }

    /// A store in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn in_folder(folder: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder)?;
        let objects = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self { objects: Arc::new(objects), place: folder.display().to_string().into() })
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
        let sha256 = hex(&Sha256::digest(&bytes));
        let stored = Stored { blob: key_of(&sha256), sha256, bytes: bytes.len() as u64 };
        self.objects.put(&Key::from(stored.blob.as_str()), PutPayload::from_bytes(bytes)).await?;
        Ok(stored)
    }

    /// Begins a blob that arrives in pieces. It lies in an unnamed temporary file until its digest, and so its key, is known.
    ///
    /// # Errors
    /// When there is no room for it.
    pub async fn writer(&self) -> Result<BlobWriter, StoreError> {
        let file = tokio::task::spawn_blocking(tempfile::tempfile).await.map_err(io::Error::other)??;
        Ok(BlobWriter { store: self.clone(), file: tokio::fs::File::from_std(file), digest: Sha256::new(), bytes: 0 })
    }

    /// Reads a blob whole, or a range of it as a stream; `None` if it is not there.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, blob: &str, range: Option<Range<u64>>) -> Result<Option<BoxStream<'static, io::Result<Bytes>>>, StoreError> {
        let options = GetOptions { range: range.map(GetRange::Bounded), ..GetOptions::default() };
        match self.objects.get_opts(&Key::from(blob), options).await {
            Ok(result) => Ok(Some(result.into_stream().map(|piece| piece.map_err(io::Error::other)).boxed())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A blob whole, in memory: for what is known to be small.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn read(&self, blob: &str) -> Result<Option<Bytes>, StoreError> {
        match self.objects.get(&Key::from(blob)).await {
            Ok(result) => Ok(Some(result.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
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
    /// When the store fails or the file cannot be written.
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

/// Under this lie all blobs.
const BLOBS: &str = "sha256";
/// How much of a file is in memory at once.
const PIECE: usize = 256 * 1024;
/// Up to this size a blob goes to the store in one request; above it in parts of this size (S3 takes none below 5 MiB).
const PART: u64 = 8 * 1024 * 1024;

/// A blob on its way into the store. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct BlobWriter {
    store: DocumentStore,
    file: tokio::fs::File,
    digest: Sha256,
    bytes: u64,
}

impl BlobWriter {
    /// # Errors
    /// When the disk is full.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        self.digest.update(piece);
        self.bytes += piece.len() as u64;
        self.file.write_all(piece).await?;
        Ok(())
    }

    /// How much has been written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts what was written into the store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish(mut self) -> Result<Stored, StoreError> {
        let sha256 = hex(&self.digest.finalize());
        let stored = Stored { blob: key_of(&sha256), sha256, bytes: self.bytes };
        let key = Key::from(stored.blob.as_str());
        self.file.flush().await?;
        self.file.rewind().await?;
        if self.bytes <= PART {
            let mut whole = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
            self.file.read_to_end(&mut whole).await?;
            self.store.objects.put(&key, PutPayload::from(whole)).await?;
            return Ok(stored);
        }
        let mut upload = self.store.objects.put_multipart(&key).await?;
        loop {
            let mut part = Vec::new();
            (&mut self.file).take(PART).read_to_end(&mut part).await?;
            if part.is_empty() {
                break;
            }
            upload.put_part(PutPayload::from(part)).await?;
        }
        upload.complete().await?;
        Ok(stored)
    }
}

fn key_of(sha256: &str) -> String {
    format!("{BLOBS}/{}/{sha256}", &sha256[..2])
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

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
