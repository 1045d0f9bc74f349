//! docs/sample-protocol.pdf is what the program makes of the bundled sample today.

use crate::document_support::{make, run, sample, sha256};
use protocol_bridge::domain::agenda::Language;
use std::{fs, path::Path};

#[test]
fn the_sample_protocol_in_docs_is_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let made = make(&sample("council-2026-11"), Language::Ru);
    let bytes = fs::read(&made.pdf).unwrap();
    let kept = docs.join("sample-protocol.pdf");
    if std::env::var_os("UPDATE_SAMPLE_PROTOCOL").is_some() {
        fs::write(&kept, &bytes).unwrap();
        let picture = docs.join("sample-protocol");
        run(
            "pdftoppm",
            &["-r", "70", "-png", "-gray", "-singlefile", "-f", "1", "-l", "1", kept.to_str().unwrap(), picture.to_str().unwrap()],
        );
    }
    assert!(
        fs::read(&kept).is_ok_and(|kept| sha256(&kept) == sha256(&bytes)),
        "docs/sample-protocol.pdf is out of date; refresh it with: UPDATE_SAMPLE_PROTOCOL=1 cargo nextest run the_sample_protocol_in_docs_is_current"
    );
}
