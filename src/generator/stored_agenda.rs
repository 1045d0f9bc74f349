//! The agenda as a task stored it: what the next attempt starts from without asking the source.

use super::source::{Address, Fetched};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The output of the step that stored it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredAgenda {
    pub blob: String,
    etag: Option<String>,
    address: StoredAddress,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredAddress {
    Sample,
    Folder,
    Url(String),
}

impl StoredAgenda {
    pub fn of(fetched: &Fetched, blob: String) -> Self {
        let address = match &fetched.address {
            Address::Sample => StoredAddress::Sample,
            Address::Folder => StoredAddress::Folder,
            Address::Url(url) => StoredAddress::Url(url.to_string()),
        };
        Self { blob, etag: fetched.etag.clone(), address }
    }

    /// What was fetched then, with the blob's content; `None` if it cannot be told any more where it lay.
    pub fn fetched(self, bytes: Bytes) -> Option<Fetched> {
        let address = match self.address {
            StoredAddress::Sample => Address::Sample,
            StoredAddress::Folder => Address::Folder,
            StoredAddress::Url(url) => Address::Url(url.parse().ok()?),
        };
        Some(Fetched { bytes, etag: self.etag, address })
    }
}
