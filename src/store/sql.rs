//! A query's text: one for both databases, or one each where the dialects part. sqlx takes `$1` on both.

/// The text of one query. Every one is a `static` listed in its file's `pub const ALL`, so that a test can prepare it on both databases.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Sql {
    /// One text in the common subset.
    #[must_use]
    pub const fn same(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }

    #[must_use]
    pub const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}
