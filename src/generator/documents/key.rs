//! A blob's key, which is its digest.

/// Under this lie all blobs.
pub(super) const BLOBS: &str = "sha256";

/// A blob's digest and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Key of the blob.
    pub blob: String,
    /// Lower-case hex.
    pub sha256: String,
    pub bytes: u64,
}

impl Stored {
    pub(super) fn new(digest: &[u8], bytes: u64) -> Self {
        let sha256 = hex(digest);
        Self { blob: format!("{BLOBS}/{}/{sha256}", &sha256[..2]), sha256, bytes }
    }
}

/// The digest that a key promises; `None` for what is no blob.
pub(super) fn promised(key: &str) -> Option<&str> {
    key.strip_prefix(BLOBS)?.rsplit('/').next()
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
