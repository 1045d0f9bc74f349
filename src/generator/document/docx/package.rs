//! The package: a ZIP whose entries stand in one order, with one time and one way of packing.

use super::parts;
use crate::generator::document::model::DocumentModel;
use std::io::{Cursor, Write as _};
use zip::{CompressionMethod, DateTime, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// Writes the model as a DOCX file.
///
/// # Errors
/// What a template could not write, or a package over 4 GiB.
pub fn docx(model: &DocumentModel) -> Result<Vec<u8>, String> {
    let parts = parts::all(model).map_err(|error| error.to_string())?;
    packed(&parts).map_err(|error| error.to_string())
}

fn packed(parts: &[(&'static str, String)]) -> Result<Vec<u8>, ZipError> {
    // The earliest time that a ZIP can say: the document's own stands in its properties.
    let options = SimpleFileOptions::default()
        .last_modified_time(DateTime::DEFAULT)
        .compression_method(CompressionMethod::Deflated)
        .unix_permissions(0o644);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, options)?;
        zip.write_all(content.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}
