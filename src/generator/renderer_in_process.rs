//! The renderer that runs inside this process, on threads of its own: never on the runtime's workers, and no more at once than configured.
//!
//! A cancelled render is answered at once; its thread runs out by itself and keeps its place until then. A panic is an error of that document alone.
//! What is left in the output folder after an error is for the caller to throw away.

use super::{
    document::{docx, html, model::DocumentModel},
    renderer::{MODEL_FILE, RenderError, Rendered, Renderer},
    typesetter,
};
use crate::domain::protocol::Format;
use futures::future::BoxFuture;
use std::{
    fs, io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Component, Path, PathBuf},
    sync::Arc,
    thread,
};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

/// The typesetter recurses with the content; the default of 2 MiB is not enough for the deepest tables of a debug build.
const STACK: usize = 16 * 1024 * 1024;

/// Renders in this process.
#[derive(Debug, Clone)]
pub struct InProcessRenderer {
    places: Arc<Semaphore>,
}

impl InProcessRenderer {
    /// At most `places` documents at once; none given: as many as the machine has cores.
    #[must_use]
    pub fn new(places: Option<usize>) -> Self {
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { places: Arc::new(Semaphore::new(places.unwrap_or_else(cores).max(1))) }
    }
}

impl Renderer for InProcessRenderer {
    fn render<'a>(
        &'a self,
        input: &'a Path,
        output: &'a Path,
        formats: &'a [Format],
        cancelled: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Rendered>, RenderError>> {
        Box::pin(async move {
            let place = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Err(RenderError::Cancelled),
                place = Arc::clone(&self.places).acquire_owned() => place.map_err(|_| RenderError::Cancelled)?,
            };
            let (answer, answered) = oneshot::channel();
            let (input, output, formats) = (input.to_owned(), output.to_owned(), formats.to_vec());
            thread::Builder::new().name("render".to_owned()).stack_size(STACK).spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| render_to(&input, &output, &formats)))
                    .unwrap_or_else(|panic| Err(RenderError::Failed(format!("the typesetter panicked: {}", panic_text(panic.as_ref())))));
                // The place is free before the answer is out, so that whoever has it can start the next at once.
                drop(place);
                let _ = answer.send(result);
            })?;
            tokio::select! {
                biased;
                () = cancelled.cancelled() => Err(RenderError::Cancelled),
                result = answered => result.unwrap_or_else(|_| Err(RenderError::Failed("the typesetter's thread ended without an answer".to_owned()))),
            }
        })
    }
}

/// Reads the model and attachments from `input` and writes one file a format into `output`, all formats side by side. Blocks; runs for seconds on large
/// documents.
///
/// # Errors
/// As [`Renderer::render`]; of several, the first format's.
pub fn render_to(input: &Path, output: &Path, formats: &[Format]) -> Result<Vec<Rendered>, RenderError> {
    let model = fs::read(input.join(MODEL_FILE))?;
    let model: DocumentModel =
        serde_json::from_slice(&model).map_err(|error| RenderError::Failed(format!("{MODEL_FILE} is no document model: {error}")))?;
    thread::scope(|scope| {
        let threads: Vec<_> = formats
            .iter()
            .map(|&format| {
                let model = &model;
                thread::Builder::new()
                    .name(format!("render-{format}"))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || render_one(model, input, output, format))
            })
            .collect();
        threads.into_iter().map(|thread| thread?.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn render_one(model: &DocumentModel, input: &Path, output: &Path, format: Format) -> Result<Rendered, RenderError> {
    let (bytes, pages) = match format {
        Format::Pdf => {
            let files: Result<Vec<_>, _> = model.attachments.iter().map(|attachment| fs::read(within(input, &attachment.path)?)).collect();
            let typeset = typesetter::typeset(model, files?).map_err(RenderError::Failed)?;
            (typeset.pdf, Some(typeset.pages))
        }
        Format::Docx => (docx(model).map_err(RenderError::Failed)?, None),
        Format::Html => (html(model).map_err(RenderError::Failed)?.into_bytes(), None),
        Format::Json => (serde_json::to_vec_pretty(model).map_err(io::Error::other)?, None),
    };
    let path = output.join(format!("document.{format}"));
    fs::write(&path, bytes)?;
    Ok(Rendered { format, path, pages })
}

/// A path below the folder: no way up, no root.
fn within(folder: &Path, path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    if path.components().all(|part| matches!(part, Component::Normal(_))) {
        Ok(folder.join(path))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "an attachment's path leads out of the input folder"))
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
