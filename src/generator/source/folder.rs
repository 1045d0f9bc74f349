//! Agendas from a folder: `<agendaId>.json`, and files beside it.
//!
//! A name or a link that leads out of the folder is refused, judged by where the path really ends. Whoever can swap links inside the folder while it is read
//! can read what this process can read; the folder belongs to the operator.

use super::{
    Fetched, LinkError, OpenedFile, SourceError,
    agenda_source::{Address, MAX_AGENDA_BYTES},
};
use crate::domain::ids::AgendaId;
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;
use std::{
    io,
    path::{Component, Path, PathBuf},
};
use tokio::{fs, io::AsyncReadExt as _};
use tokio_util::io::ReaderStream;

/// The folder; its path is canonical.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    /// Set when the source is one file of the folder, whatever its agenda's id.
    only: Option<PathBuf>,
}

impl Folder {
    /// # Errors
    /// When there is no such folder.
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if root.is_dir() { Ok(Self { root, only: None }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// One file; references in it are resolved in the folder it lies in.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn of_file(file: &Path) -> io::Result<Self> {
        let file = file.canonicalize()?;
        let root = file.parent().unwrap_or(&file).to_owned();
        Ok(Self { root, only: Some(file) })
    }

    #[must_use]
    pub fn name(&self) -> String {
        self.only.as_ref().unwrap_or(&self.root).display().to_string()
    }

    /// # Errors
    /// See [`SourceError`].
    pub async fn fetch(&self, id: &AgendaId) -> Result<Fetched, SourceError> {
        let path = match &self.only {
            Some(file) => file.clone(),
            None => self.root.join(format!("{id}.json")),
        };
        let (file, bytes) = match self.open_inside(&path).await {
            Ok(opened) => opened,
            Err(Opening::Missing) => return Err(SourceError::NotFound(id.to_string())),
            Err(Opening::Outside) => return Err(SourceError::Refused(format!("{id}.json leads out of the folder"))),
            Err(Opening::Failed(error)) => return Err(SourceError::Unavailable(format!("{id}.json cannot be read: {error}"))),
        };
        if bytes > MAX_AGENDA_BYTES {
            return Err(SourceError::TooLarge { limit: MAX_AGENDA_BYTES });
        }
        let mut content = Vec::new();
        // The file may grow while it is read.
        let read = file.take(MAX_AGENDA_BYTES + 1).read_to_end(&mut content).await;
        read.map_err(|error| SourceError::Unavailable(format!("{id}.json cannot be read: {error}")))?;
        if content.len() as u64 > MAX_AGENDA_BYTES {
            return Err(SourceError::TooLarge { limit: MAX_AGENDA_BYTES });
        }
        Ok(Fetched { bytes: content.into(), etag: None, address: Address::Folder })
    }

    /// # Errors
    /// When the folder cannot be read.
    pub async fn list(&self, after: Option<&AgendaId>, limit: usize) -> Result<Vec<AgendaId>, SourceError> {
        let unavailable = |error: io::Error| SourceError::Unavailable(format!("the agenda folder cannot be read: {error}"));
        let mut entries = fs::read_dir(&self.root).await.map_err(unavailable)?;
        let mut ids = Vec::new();
        while let Some(entry) = entries.next_entry().await.map_err(unavailable)? {
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(|name| name.parse::<AgendaId>().ok());
            ids.extend(id.filter(|id| after.is_none_or(|after| id > after)));
        }
        ids.sort();
        ids.truncate(limit);
        Ok(ids)
    }

    /// Opens a file beside the agendas.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn open_file(&self, href: &str) -> Result<OpenedFile, LinkError> {
        let name = percent_decode_str(href).decode_utf8().map_err(|_| LinkError::Refused(format!("{href:?} is not a file name")))?;
        if name.contains('\0') {
            return Err(LinkError::Refused(format!("{href:?} is not a file name")));
        }
        // Told without a look at what is there: a name that climbs out is refused whether or not it exists.
        if climbs_out(Path::new(name.as_ref())) {
            return Err(LinkError::Refused(format!("{href:?} leads out of the folder")));
        }
        match self.open_inside(&self.root.join(name.as_ref())).await {
            Ok((file, bytes)) => {
                Ok(OpenedFile { bytes: Some(bytes), media_type: None, etag: None, content: ReaderStream::new(file).boxed() })
            }
            Err(Opening::Missing) => Err(LinkError::Missing(format!("there is no file {href:?} beside the agenda"))),
            Err(Opening::Outside) => Err(LinkError::Refused(format!("{href:?} leads out of the folder"))),
            Err(Opening::Failed(error)) => Err(LinkError::Unavailable(format!("{href:?} cannot be read: {error}"))),
        }
    }

    async fn open_inside(&self, path: &Path) -> Result<(fs::File, u64), Opening> {
        let path = fs::canonicalize(path).await.map_err(Opening::from)?;
        if !path.starts_with(&self.root) {
            return Err(Opening::Outside);
        }
        // A pipe or a device would hold the reader for ever.
        if !fs::metadata(&path).await.map_err(Opening::from)?.is_file() {
            return Err(Opening::Missing);
        }
        let file = fs::File::open(&path).await.map_err(Opening::from)?;
        let bytes = file.metadata().await.map_err(Opening::from)?.len();
        Ok((file, bytes))
    }
}

fn climbs_out(name: &Path) -> bool {
    let mut depth = 0_usize;
    name.components().any(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            false
        }
        Component::CurDir => false,
        Component::ParentDir if depth > 0 => {
            depth -= 1;
            false
        }
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => true,
    })
}

enum Opening {
    Missing,
    Outside,
    Failed(io::Error),
}

impl From<io::Error> for Opening {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> AgendaId {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn a_name_or_link_that_leads_out_is_refused_and_nothing_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.json"), "{}").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.json"), inside.path().join("link.json")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way")).unwrap();
        std::fs::write(inside.path().join("a.json"), "{}").unwrap();
        std::os::unix::fs::symlink("a.json", inside.path().join("b.json")).unwrap();
        let folder = Folder::open(inside.path()).unwrap();

        assert_eq!(folder.fetch(&id("a")).await.unwrap().bytes, "{}");
        assert_eq!(folder.fetch(&id("b")).await.unwrap().bytes, "{}", "a link within the folder is fine");
        assert!(matches!(folder.fetch(&id("link")).await, Err(SourceError::Refused(_))));
        assert!(matches!(folder.fetch(&id("nobody")).await, Err(SourceError::NotFound(_))));
        let secret = outside.path().join("secret.json").display().to_string();
        let climbing = format!("../{}/secret.json", outside.path().file_name().unwrap().to_str().unwrap());
        for href in
            ["way/secret.json", "link.json", &secret, &climbing, &climbing.replace('/', "%2f"), "../../etc/passwd", "a\0.json", "a%00.json"]
        {
            let refused = folder.open_file(href).await;
            assert!(matches!(refused, Err(LinkError::Refused(_) | LinkError::Unavailable(_))), "{href}: {refused:?}");
        }
        assert!(matches!(folder.open_file(&climbing).await, Err(LinkError::Refused(_))));
        assert_eq!(folder.open_file("a.json").await.unwrap().bytes, Some(2));
    }

    #[tokio::test]
    async fn what_is_no_file_is_not_there() {
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("folder.json")).unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        assert!(matches!(folder.fetch(&id("folder")).await, Err(SourceError::NotFound(_))));
    }

    #[tokio::test]
    async fn agendas_are_listed_in_order_and_a_page_at_a_time() {
        let inside = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", "c.json", ".hidden.json", "notes.txt", "x y.json"] {
            std::fs::write(inside.path().join(name), "{}").unwrap();
        }
        let folder = Folder::open(inside.path()).unwrap();
        assert_eq!(folder.list(None, 2).await.unwrap(), [id("a"), id("b")]);
        assert_eq!(folder.list(Some(&id("b")), 2).await.unwrap(), [id("c")]);
    }
}
