//! What is wrong with a configuration, in words for the person who wrote it.

use std::{fmt, io, path::PathBuf};

/// One thing that is wrong, or (as a warning) dangerous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, such as `engine.lease`.
    pub key: String,
    /// Which file, or the environment, or a flag; `None` when the value is the default or comes from several.
    pub origin: Option<String>,
    /// What is wrong and what to do.
    pub reason: String,
}

impl Problem {
    #[must_use]
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), origin: None, reason: reason.into() }
    }

    #[must_use]
    pub fn from(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{} (from {origin}): {}", self.key, self.reason),
            None => write!(f, "{}: {}", self.key, self.reason),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the configuration file {} cannot be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the configuration file {} is not TOML: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    /// All problems at once, never empty.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Problem>),
}
