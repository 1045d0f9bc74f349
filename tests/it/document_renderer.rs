//! The renderer in this process: bounded, answering a cancel at once, and turning whatever goes wrong into an error of that document.

use crate::document_support::{make, sample};
use protocol_bridge::{
    domain::{agenda::Language, protocol::Format},
    generator::{
        InProcessRenderer,
        renderer::{MODEL_FILE, RenderError, Renderer as _},
    },
};
use std::{fs, time::Duration};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_folder_in_a_folder_out() {
    let made = make(&sample("council-2026-11"), Language::Ru);
    let (input, output) = (made.folder.path().join("in"), made.folder.path().join("again"));
    fs::create_dir(&output).unwrap();
    let renderer = InProcessRenderer::new(Some(1));
    let documents = renderer.render(&input, &output, &Format::ALL, &CancellationToken::new()).await.unwrap();
    assert_eq!(documents.iter().map(|document| document.format).collect::<Vec<_>>(), Format::ALL);
    assert_eq!(documents[0].pages, Some(made.pages));
    assert_eq!(fs::read(&documents[0].path).unwrap(), fs::read(&made.pdf).unwrap());
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&documents[3].path).unwrap()).unwrap();
    assert_eq!(json["head"]["kind"], "ПРОТОКОЛ");
    assert_eq!(json["sections"].as_array().unwrap().len(), 6);
    for (document, format) in documents.iter().zip(Format::ALL) {
        assert_eq!(fs::read(&document.path).unwrap(), fs::read(made.render(format)).unwrap(), "{format}: side by side as alone");
    }
}

#[tokio::test]
async fn a_cancel_is_answered_at_once_even_while_all_places_are_taken() {
    let made = make(&sample("large-council"), Language::Ru);
    let (input, output) = (made.folder.path().join("in"), made.folder.path().join("out"));
    let renderer = InProcessRenderer::new(Some(1));
    let (running, waiting) = (CancellationToken::new(), CancellationToken::new());
    let first = renderer.render(&input, &output, &[Format::Pdf], &running);
    let second = renderer.render(&input, &output, &[Format::Pdf], &waiting);
    let cancels = async {
        tokio::task::yield_now().await;
        waiting.cancel();
        running.cancel();
    };
    let all = async { tokio::join!(first, second, cancels) };
    let (first, second, ()) = tokio::time::timeout(Duration::from_millis(500), all).await.expect("a cancelled render answers at once");
    assert!(matches!(first, Err(RenderError::Cancelled)), "{first:?}");
    assert!(matches!(second, Err(RenderError::Cancelled)), "{second:?}");
    // The place comes back when the thread has run out.
    let never = CancellationToken::new();
    let third = renderer.render(&input, &output, &[Format::Json], &never);
    assert!(tokio::time::timeout(Duration::from_mins(1), third).await.expect("the place comes back").is_ok());
}

#[tokio::test]
async fn what_goes_wrong_is_an_error_of_that_document_only() {
    let made = make(&sample("slow-council"), Language::Ru);
    let (input, output) = (made.folder.path().join("in"), made.folder.path().join("out"));
    let renderer = InProcessRenderer::new(Some(1));
    let render = async |formats: &'static [Format]| renderer.render(&input, &output, formats, &CancellationToken::new()).await;

    let model = fs::read_to_string(input.join(MODEL_FILE)).unwrap();
    // A character without a glyph: the export names it instead of leaving a hole.
    fs::write(input.join(MODEL_FILE), model.replace("Школа", "漢")).unwrap();
    let glyph = render(&[Format::Pdf]).await;
    assert!(matches!(&glyph, Err(RenderError::Failed(text)) if text.contains('漢')), "{glyph:?}");
    // Two questions under one label.
    fs::write(input.join(MODEL_FILE), model.replace("\"q-0002\"", "\"q-0001\"")).unwrap();
    let twice = render(&[Format::Pdf]).await;
    assert!(matches!(&twice, Err(RenderError::Failed(_))), "{twice:?}");
    // A path out of the folder.
    fs::write(input.join(MODEL_FILE), model.replace("\"snapshot.json\"", "\"../in/snapshot.json\"")).unwrap();
    let outside = render(&[Format::Pdf]).await;
    assert!(matches!(&outside, Err(RenderError::Io(_))), "{outside:?}");
    fs::write(input.join(MODEL_FILE), "{").unwrap();
    assert!(matches!(render(&[Format::Pdf]).await, Err(RenderError::Failed(_))));
    fs::remove_file(input.join(MODEL_FILE)).unwrap();
    assert!(matches!(render(&[Format::Pdf]).await, Err(RenderError::Io(_))));

    fs::write(input.join(MODEL_FILE), model).unwrap();
    assert!(render(&[Format::Pdf]).await.is_ok(), "the next document comes out");
}
