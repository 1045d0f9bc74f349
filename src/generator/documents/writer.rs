//! A blob that arrives in pieces.

use super::{DocumentStore, StoreError, key::Stored};
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sha2::{Digest as _, Sha256};
use std::{io, sync::Arc};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

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
    pub(super) async fn begin(store: DocumentStore) -> Result<Self, StoreError> {
        let scratch = Arc::clone(&store.scratch);
        let made = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&scratch)?;
            tempfile::tempfile_in(&scratch)
        });
        let file = made.await.map_err(io::Error::other)??;
        Ok(Self { store, file: tokio::fs::File::from_std(file), digest: Sha256::new(), bytes: 0 })
    }

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
        let stored = Stored::new(&self.digest.finalize(), self.bytes);
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
        match send(&mut self.file, &mut *upload).await {
            Ok(()) => Ok(stored),
            Err(error) => {
                // Parts without an end cost money until somebody clears them away; a store that is away keeps them.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }
}

/// Sends a file's content, one part in memory at a time.
async fn send(file: &mut tokio::fs::File, upload: &mut dyn MultipartUpload) -> Result<(), StoreError> {
    loop {
        let mut part = Vec::new();
        (&mut *file).take(PART).read_to_end(&mut part).await?;
        if part.is_empty() {
            break;
        }
        upload.put_part(PutPayload::from(part)).await?;
    }
    upload.complete().await?;
    Ok(())
}
