//! Every list: `{items, nextCursor}`.

use crate::domain::cursor::Page;
use serde::Serialize;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct List<T> {
    pub items: Vec<T>,
    /// Give it as `cursor` to get the next page; null on the last one.
    #[schema(required, nullable)]
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    #[must_use]
    pub fn of<D>(page: Page<D>, show: impl Fn(D) -> T) -> Self {
        Self { items: page.items.into_iter().map(show).collect(), next_cursor: page.next_cursor.map(|cursor| cursor.to_string()) }
    }
}
