//! A blob's content on its way out, compared with its key. The last piece is held back until the digest is known and is an error if it is another one, so that
//! who reads to the end knows, and who sends it on with a `Content-Length` breaks off before the end.

use super::{StoreError, hex, key};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use std::io;

pub(super) fn verified(
    blob: &str,
    content: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let check = Check { blob: blob.to_owned(), content, digest: Sha256::new(), held: None };
    stream::unfold(Some(check), |check: Option<Check<_>>| async move { check?.next().await })
}

struct Check<S> {
    blob: String,
    content: S,
    digest: Sha256,
    /// What has come and may be the last.
    held: Option<Bytes>,
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Check<S> {
    /// The next piece, and what is left; nothing is left after the last.
    async fn next(mut self) -> Option<(io::Result<Bytes>, Option<Self>)> {
        loop {
            match self.content.next().await {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    self.digest.update(&piece);
                    if let Some(before) = self.held.replace(piece) {
                        return Some((Ok(before), Some(self)));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let is_same = key::promised(&self.blob).is_none_or(|promised| promised == hex(&self.digest.finalize()));
                    if is_same {
                        return self.held.map(|last| (Ok(last), None));
                    }
                    return Some((Err(io::Error::other(StoreError::Altered { blob: self.blob })), None));
                }
            }
        }
    }
}
