//! The seam behind which typesetting happens: a folder in, a folder out. Today in this process, later in a child process; callers cannot tell.

use crate::domain::protocol::Format;
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The file in the input folder that holds the [`super::document::model::DocumentModel`] as JSON; attachments lie beside it as the model names them.
pub const MODEL_FILE: &str = "model.json";

/// A document that the renderer left in the output folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub format: Format,
    pub path: PathBuf,
    pub pages: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The content or the template does not typeset; the text says why.
    #[error("the document does not typeset: {0}")]
    Failed(String),
    /// It took more time or memory than it may.
    #[error("the renderer ran over its limit: {0}")]
    Limit(String),
    #[error("the renderer could not read or write its files")]
    Io(#[from] std::io::Error),
    #[error("stopped")]
    Cancelled,
}

/// Makes documents from a folder.
pub trait Renderer: Send + Sync + 'static {
    /// Reads [`MODEL_FILE`] and attachments from `input`, writes one file a format into `output`. Same input, same bytes.
    fn render<'a>(
        &'a self,
        input: &'a Path,
        output: &'a Path,
        formats: &'a [Format],
        cancelled: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Rendered>, RenderError>>;
}
