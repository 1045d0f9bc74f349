//! The document as HTML: one file without scripts or addresses outside it, to be read on a screen and printed like the PDF.
//!
//! The page is well-formed XML, too. Its own policy lets it load nothing and use no style but the one in its head, wherever it is opened from.

use super::{
    model::{Block, DocumentModel, SHORT_TABLE},
    xml::only_legal,
};
use askama::Template;
use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../../templates/document/protocol.css");

/// Allows the style in the head by its digest, and nothing else.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
});

#[derive(Template)]
#[template(path = "document/protocol.html")]
struct Page<'a> {
    model: &'a DocumentModel,
    language: &'static str,
    style: &'static str,
    policy: &'a str,
}

/// Writes the model as a page; the same model, the same bytes.
///
/// # Errors
/// What the template could not write.
pub fn html(model: &DocumentModel) -> Result<String, String> {
    let page = Page { model, language: model.language.as_str(), style: STYLE, policy: &POLICY };
    page.render().map(only_legal).map_err(|error| error.to_string())
}
