//! A page cursor: where the last page ended, in the order (created, id), opaque to clients. Rows that come or go in between neither repeat nor vanish.

use super::time::Timestamp;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// The position after which the next page begins (newest first).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub at: Timestamp,
    pub id: Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this cursor is not one that a list gave; ask for the first page again")]
pub struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.at.as_micros().to_be_bytes());
        bytes[8..].copy_from_slice(self.id.as_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes: [u8; 24] = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok()).ok_or(InvalidCursor)?;
        let (at, id) = bytes.split_at(8);
        let at = i64::from_be_bytes(at.try_into().map_err(|_| InvalidCursor)?);
        Ok(Self { at: Timestamp::from_micros(at), id: Uuid::from_slice(id).map_err(|_| InvalidCursor)? })
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<Cursor>,
}

impl<T> Page<T> {
    /// Makes a page from up to `limit` + 1 rows: the one too many says that there is a next page.
    #[must_use]
    pub fn from_rows(mut items: Vec<T>, limit: usize, position: impl Fn(&T) -> Cursor) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = if more { items.last().map(position) } else { None };
        Self { items, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text() {
        let cursor = Cursor { at: Timestamp::from_micros(1_796_040_000_123_456), id: Uuid::from_u128(7) };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for bad in ["", "x", "AAAA", "../x", "ы"] {
            assert_eq!(bad.parse::<Cursor>(), Err(InvalidCursor));
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let at = |n: &u32| Cursor { at: Timestamp::from_micros(i64::from(*n)), id: Uuid::nil() };
        assert_eq!(Page::from_rows(vec![3, 2, 1], 2, at), Page { items: vec![3, 2], next_cursor: Some(at(&2)) });
        assert_eq!(Page::from_rows(vec![3, 2], 2, at), Page { items: vec![3, 2], next_cursor: None });
    }
}
