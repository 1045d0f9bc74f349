//! The source that is configured: samples, a folder, a single file, or an HTTP service.

use super::{LinkError, SourceError, folder::Folder, http::HttpSource, samples, upstream::Upstream};
use crate::{base::config, domain::ids::AgendaId, generator::documents::hex};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use std::{fmt, io, path::Path};

/// No agenda is larger; report files travel by reference when they are many.
pub const MAX_AGENDA_BYTES: u64 = 32 * 1024 * 1024;

/// Where agendas come from; cheap to clone.
#[derive(Debug, Clone)]
pub enum Source {
    Samples,
    Folder(Folder),
    Http(HttpSource),
}

/// An agenda as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub bytes: Bytes,
    pub etag: Option<String>,
    /// Where it lies: relative references in it are resolved against this.
    pub address: Address,
}

/// Where an agenda lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Has no files beside it.
    Sample,
    /// In the source's folder.
    Folder,
    Url(Url),
}

/// A file that an agenda refers to, open for reading.
pub struct OpenedFile {
    /// As its holder announces it, if it does.
    pub bytes: Option<u64>,
    /// Likewise, without parameters.
    pub media_type: Option<String>,
    pub etag: Option<String>,
    pub content: BoxStream<'static, io::Result<Bytes>>,
}

/// What came of asking for a file.
#[derive(Debug)]
pub enum Opened {
    File(OpenedFile),
    /// It still is what the ETag named.
    Unchanged,
}

/// What came of asking for an object that an agenda links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linked {
    Object {
        bytes: Bytes,
        etag: Option<String>,
    },
    /// It still is what the ETag named.
    Unchanged,
    TooLarge,
}

impl Address {
    /// A reference in an agenda that lies here, as it is known among all agendas of the source.
    #[must_use]
    pub fn resolve(&self, href: &str) -> String {
        match self {
            Self::Url(base) => base.join(href).map_or_else(|_| href.to_owned(), Into::into),
            Self::Sample | Self::Folder => href.to_owned(),
        }
    }
}

impl fmt::Debug for OpenedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedFile").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Fetched {
    /// What tells this state of the agenda from another: the source's ETag, else the content's hash.
    #[must_use]
    pub fn revision(&self) -> String {
        self.etag.clone().unwrap_or_else(|| format!("sha256:{}", hex(&Sha256::digest(&self.bytes))))
    }
}

impl Source {
    /// The configured source.
    ///
    /// # Errors
    /// When the setting is neither `samples`, nor a URL with `{agendaId}`, nor a folder that is there.
    pub fn open(config: &config::AgendaConfig) -> Result<Self, String> {
        let setting = config.source.as_str();
        if setting == "samples" {
            return Ok(Self::Samples);
        }
        if is_url(setting) {
            return HttpSource::from_template(config).map(Self::Http);
        }
        Folder::open(Path::new(setting))
            .map(Self::Folder)
            .map_err(|error| format!("agenda.source: the folder {setting:?} cannot be used: {error}"))
    }

    /// Names the source in keys of steps.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Samples => "samples".to_owned(),
            Self::Folder(folder) => folder.name(),
            Self::Http(http) => http.name(),
        }
    }

    /// Whether another look costs a request to somebody else.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Reads an agenda.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub async fn fetch(&self, id: &AgendaId) -> Result<Fetched, SourceError> {
        match self {
            Self::Samples => samples::fetch(id),
            Self::Folder(folder) => folder.fetch(id).await,
            Self::Http(http) => http.fetch(id).await,
        }
    }

    /// Reads an agenda again; `None` if its source says that it still is what the ETag named.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub async fn fetch_if_changed(&self, id: &AgendaId, etag: Option<&str>) -> Result<Option<Fetched>, SourceError> {
        match self {
            Self::Http(http) => http.fetch_if_changed(id, etag).await,
            Self::Samples | Self::Folder(_) => self.fetch(id).await.map(Some),
        }
    }

    /// Ids after `after`, in order; at most `limit`. A source that cannot list has none.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn list(&self, after: Option<&AgendaId>, limit: usize) -> Result<Vec<AgendaId>, SourceError> {
        match self {
            Self::Samples => Ok(samples::list(after, limit)),
            Self::Folder(folder) => folder.list(after, limit).await,
            Self::Http(_) => Ok(Vec::new()),
        }
    }

    /// Opens a file that an agenda at `address` refers to, unless it still is what the ETag named. `outside` is the client for links that lead out of a folder.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn open_file(&self, address: &Address, href: &str, etag: Option<&str>, outside: &Upstream) -> Result<Opened, LinkError> {
        match (self, address) {
            (Self::Http(http), Address::Url(base)) => {
                let url = base.join(href).map_err(|error| LinkError::Refused(format!("{href:?} is not an address: {error}")))?;
                http.upstream().open(&url, etag).await
            }
            _ if is_url(href) => {
                let url = Url::parse(href).map_err(|error| LinkError::Refused(format!("{href:?} is not an address: {error}")))?;
                outside.open(&url, etag).await
            }
            (Self::Folder(folder), _) => folder.open_file(href).await.map(Opened::File),
            _ => Err(LinkError::Refused(format!("{href:?} cannot be resolved: a bundled sample has no files beside it"))),
        }
    }
}

impl Source {
    /// Reads an object of at most `limit` bytes that an agenda at `address` links to, unless it still is what the ETag named.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn read_linked(
        &self,
        address: &Address,
        href: &str,
        etag: Option<&str>,
        limit: u64,
        outside: &Upstream,
    ) -> Result<Linked, LinkError> {
        let OpenedFile { bytes: announced, etag, mut content, .. } = match self.open_file(address, href, etag, outside).await? {
            Opened::Unchanged => return Ok(Linked::Unchanged),
            Opened::File(file) => file,
        };
        if announced.is_some_and(|bytes| bytes > limit) {
            return Ok(Linked::TooLarge);
        }
        let mut bytes = BytesMut::new();
        while let Some(piece) = content.next().await {
            let piece = piece.map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => LinkError::TooSlow(format!("{href} did not come in time")),
                _ => LinkError::Unavailable(format!("{href} broke off")),
            })?;
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > limit {
                return Ok(Linked::TooLarge);
            }
        }
        Ok(Linked::Object { bytes: bytes.freeze(), etag })
    }
}

/// Whether a text is an absolute HTTP address.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}
