//! `[generator]` and `[documents]`: what is made, and where it is kept.

use super::{Problem, Secret, text};
use crate::domain::{agenda::Language, protocol::Format};
use bytesize::ByteSize;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    pub formats: Vec<Format>,
    /// `None`: the agenda's own.
    #[serde(default)]
    pub language: Option<Language>,
    pub max_questions: usize,
    #[serde(deserialize_with = "text::size")]
    pub max_report_size: ByteSize,
    /// How many documents are typeset at once; 0: as many as there are cores.
    pub renderers: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Documents {
    /// A folder, or `s3://bucket/prefix`; empty: `documents` in `data_dir`.
    #[serde(default)]
    pub store: String,
    /// Empty: AWS. This and the other `s3_…` are taken from `AWS_*` variables where they are empty.
    #[serde(default)]
    pub s3_endpoint: String,
    #[serde(default)]
    pub s3_region: String,
    #[serde(default)]
    pub s3_access_key_id: String,
    #[serde(default)]
    pub s3_secret_access_key: Secret,
    pub s3_allow_http: bool,
}

/// Where documents are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentsPlace {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

const S3: &str = "s3://";

impl Generator {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        if self.formats.is_empty() {
            problems.push(Problem::new("generator.formats", "is empty, so nothing would be made; name at least one format"));
        }
        if self.formats.iter().enumerate().any(|(at, format)| self.formats[..at].contains(format)) {
            problems.push(Problem::new("generator.formats", "names a format twice; name each once"));
        }
        if self.max_questions == 0 {
            problems.push(Problem::new("generator.max_questions", "is 0, so every agenda would be refused; write at least 1"));
        }
        if self.max_report_size.as_u64() == 0 {
            problems.push(Problem::new("generator.max_report_size", "is 0, so every report would be refused; the default is 64MiB"));
        }
    }
}

impl Documents {
    /// Where documents are kept.
    #[must_use]
    pub fn place(&self, data_dir: &Path) -> DocumentsPlace {
        match self.store.strip_prefix(S3) {
            Some(address) => {
                let (bucket, prefix) = address.split_once('/').unwrap_or((address, ""));
                DocumentsPlace::Bucket { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() }
            }
            None if self.store.is_empty() => DocumentsPlace::Folder(data_dir.join("documents")),
            None => DocumentsPlace::Folder(self.store.clone().into()),
        }
    }

    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |key: &str, reason: String| problems.push(Problem::new(format!("documents.{key}"), reason));
        match self.place(Path::new("")) {
            DocumentsPlace::Bucket { bucket, .. } => {
                let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
                if bucket.len() < 3 || !bucket.chars().all(is_name) {
                    refuse("store", format!("{:?} names no bucket; write s3://bucket or s3://bucket/prefix", self.store));
                }
            }
            DocumentsPlace::Folder(_) if self.store.contains("://") => {
                refuse(
                    "store",
                    format!("{:?} is neither a folder nor s3://bucket/prefix; leave it empty for documents in data_dir", self.store),
                );
            }
            DocumentsPlace::Folder(_) => {}
        }
        if !self.s3_endpoint.is_empty() {
            let url = reqwest::Url::parse(&self.s3_endpoint).ok().filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"));
            match url {
                None => refuse("s3_endpoint", format!("{:?} is not an address; write it like https://s3.example.org", self.s3_endpoint)),
                Some(url) if url.scheme() == "http" && !self.s3_allow_http => {
                    let reason =
                        "is not encrypted; write https, or set documents.s3_allow_http if it does not leave this machine or network";
                    refuse("s3_endpoint", format!("{:?} {reason}", self.s3_endpoint));
                }
                Some(_) => {}
            }
        }
        if self.s3_access_key_id.is_empty() != self.s3_secret_access_key.is_empty() {
            refuse("s3_secret_access_key", "goes with documents.s3_access_key_id: set both, or neither to take them from AWS_*".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(store: &str) -> DocumentsPlace {
        let documents = Documents {
            store: store.to_owned(),
            s3_endpoint: String::new(),
            s3_region: String::new(),
            s3_access_key_id: String::new(),
            s3_secret_access_key: Secret::default(),
            s3_allow_http: false,
        };
        documents.place(Path::new("data"))
    }

    #[test]
    fn a_store_is_a_folder_or_a_bucket() {
        let bucket = |bucket: &str, prefix: &str| DocumentsPlace::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() };
        assert_eq!(place(""), DocumentsPlace::Folder("data/documents".into()));
        assert_eq!(place("/srv/documents"), DocumentsPlace::Folder("/srv/documents".into()));
        assert_eq!(place("s3://protocols"), bucket("protocols", ""));
        assert_eq!(place("s3://protocols/council/2026/"), bucket("protocols", "council/2026"));
    }
}
