//! What can go wrong with the document store.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not answer, refuses, or is full.
    #[error("the document store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is under a key is not what was put there.
    #[error("the blob {blob} is not what was stored")]
    Altered { blob: String },
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            // What a stream found out on its way through `io::Error`.
            Ok(ours) => ours,
            Err(error) => Self::Failed(Box::new(error)),
        }
    }
}
