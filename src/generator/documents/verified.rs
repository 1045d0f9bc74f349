//! A blob's content on its way out, compared with its key: the last piece is followed by an error when the digest is another one, so that who reads to the end
//! knows, and who sends it on breaks off.

use super::{StoreError, hex, key};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use std::io;

pub(super) fn verified(
    blob: &str,
    content: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let promised = key::promised(blob).map(str::to_owned);
    let blob = blob.to_owned();
    stream::unfold(Some((content, Sha256::new())), move |state| {
        let (promised, blob) = (promised.clone(), blob.clone());
        async move {
            let (mut content, mut digest) = state?;
            match content.next().await {
                Some(Ok(piece)) => {
                    digest.update(&piece);
                    Some((Ok(piece), Some((content, digest))))
                }
                Some(Err(error)) => Some((Err(error), None)),
                None if promised.is_none_or(|promised| promised == hex(&digest.finalize())) => None,
                None => Some((Err(io::Error::other(StoreError::Altered { blob })), None)),
            }
        }
    })
}
