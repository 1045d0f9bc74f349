//! A text that no log, no error and no `Debug` shows.

use serde::Deserialize;
use std::fmt;

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

/// Every secret of the configuration, as section and key; each may be given as `{key}_file`, the path of a file that holds it.
pub(super) const SECRETS: &[(&str, &str)] = &[
    ("database", "url"),
    ("database", "listen_url"),
    ("engine", "transport"),
    ("agenda", "token"),
    ("documents", "s3_secret_access_key"),
    ("auth", "secret_key"),
];

impl Secret {
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { "\"***\"" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_it() {
        assert_eq!(format!("{:?}", Secret::from("hunter2")), "\"***\"");
        assert_eq!(format!("{:?}", Secret::default()), "\"\"");
    }
}
