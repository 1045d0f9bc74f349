//! `[database]`: which of the two databases, and how.

use super::{Problem, Secret};
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `postgres://…`, or `sqlite:PATH`; empty: a SQLite file in `data_dir`.
    #[serde(default)]
    pub url: Secret,
    /// PostgreSQL behind a connection pooler: the server itself, for what needs a session of its own; empty: the same as `url`.
    #[serde(default)]
    pub listen_url: Secret,
    pub max_connections: u32,
    pub migrate: Migrate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Migrate {
    Auto,
    Off,
}

impl Database {
    pub(super) fn validate(&self, problems: &mut Vec<Problem>) {
        let url = self.url.expose();
        // The URL may hold a password, so the message names its beginning only.
        if !(url.is_empty() || ["postgres://", "postgresql://", "sqlite:"].iter().any(|scheme| url.starts_with(scheme))) {
            problems.push(Problem::new(
                "database.url",
                "starts with none of postgres://, postgresql:// and sqlite:; leave it empty for a SQLite file in data_dir",
            ));
        }
        let listen_url = self.listen_url.expose();
        if !(listen_url.is_empty() || ["postgres://", "postgresql://"].iter().any(|scheme| listen_url.starts_with(scheme))) {
            problems.push(Problem::new("database.listen_url", "starts with neither postgres:// nor postgresql://"));
        } else if !listen_url.is_empty() && (url.is_empty() || url.starts_with("sqlite:")) {
            problems.push(Problem::new(
                "database.listen_url",
                "is for PostgreSQL, and database.url is a SQLite file; leave it empty, or write the same server's URL into database.url",
            ));
        }
        if self.max_connections < 2 {
            problems.push(Problem::new("database.max_connections", "is too few; write at least 2"));
        }
    }
}
