//! Path and query parameters, checked like bodies: unknown names, wrong values and what cannot be stored are told with their place.

use super::Problem;
use crate::domain::{
    cursor::{Cursor, InvalidCursor},
    failure::Fault,
};
use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use percent_encoding::percent_decode_str;
use std::{fmt::Display, str::FromStr};

/// The one parameter in the path.
#[derive(Debug)]
pub struct PathParameter<T>(pub T);

impl<T, S> FromRequestParts<S> for PathParameter<T>
where
    T: FromStr<Err: Display>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let parameters = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("not-utf8", "/path", "the path is not UTF-8 when its percent signs are decoded"))?;
        let Some((name, value)) = parameters.iter().next() else {
            return Err(Problem::invalid("missing", "/path", "the path lacks its parameter"));
        };
        value.parse().map(Self).map_err(|error: T::Err| Problem::invalid("invalid", format!("/path/{name}"), error.to_string()))
    }
}

/// The query's parameters, still unread.
#[derive(Debug)]
pub struct Query {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

/// How many items a list answers unless asked otherwise, and at most.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let mut query = Self { pairs: Vec::new(), known: Vec::new(), faults: Vec::new() };
        for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| Problem::invalid("not-utf8", "/query", "a parameter's name is not UTF-8"))?;
            match decode(value) {
                Some(value) if value.contains('\0') => query.refuse(&name, "nul", "holds the character U+0000, which cannot be stored"),
                Some(value) => query.pairs.push((name, value)),
                None => query.refuse(&name, "not-utf8", "the value is not UTF-8"),
            }
        }
        Ok(query)
    }
}

impl Query {
    /// A parameter that may be left out; an empty value counts as left out.
    pub fn optional<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let value = self.take(name)?;
        match value.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(name, "invalid", error.to_string());
                None
            }
        }
    }

    /// A parameter that has to be there.
    pub fn required<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let value = self.optional(name);
        let pointer = super::json_scan::pointer_to("/query", name);
        if value.is_none() && !self.faults.iter().any(|fault| fault.pointer == pointer) {
            self.refuse(name, "missing", "this parameter is needed");
        }
        value
    }

    /// `limit`: 1 to 200, 50 if left out. It is documented as a number, so that an empty one is refused.
    pub fn limit(&mut self) -> usize {
        let Some(value) = self.take_as_it_is("limit") else { return DEFAULT_LIMIT };
        match value.parse() {
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) => limit,
            _ => {
                self.refuse("limit", "invalid", format!("has to be a number from 1 to {MAX_LIMIT}"));
                DEFAULT_LIMIT
            }
        }
    }

    /// `cursor`: the last page's `nextCursor`.
    pub fn cursor(&mut self) -> Option<Cursor> {
        self.position()
    }

    /// The same for a list whose pages begin after something else.
    pub fn position<T: FromStr>(&mut self) -> Option<T> {
        let value = self.take("cursor")?;
        let position = value.parse().ok();
        if position.is_none() {
            self.refuse("cursor", "invalid", InvalidCursor.to_string());
        }
        position
    }

    /// Ends the reading: whatever is left is unknown, and a filter with a typing error would silently show everything.
    ///
    /// # Errors
    /// Everything that was wrong.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            if self.known.contains(&name.as_str()) {
                self.refuse(&name, "repeated-parameter", "this parameter comes twice");
            } else {
                let detail = format!("there is no such parameter; there are {}", self.known.join(", "));
                self.refuse(&name, "unknown-parameter", detail);
            }
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_all(self.faults)) }
    }

    fn take(&mut self, name: &'static str) -> Option<String> {
        self.take_as_it_is(name).filter(|value| !value.is_empty())
    }

    fn take_as_it_is(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.remove(at).1)
    }

    fn refuse(&mut self, name: &str, code: &str, detail: impl Into<String>) {
        let pointer = super::json_scan::pointer_to("/query", name);
        self.faults.push(Fault { code: code.to_owned(), pointer, detail: detail.into() });
    }
}

/// Decodes a name or value as forms write them.
fn decode(text: &str) -> Option<String> {
    percent_decode_str(&text.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    async fn query(text: &str) -> Query {
        let (mut parts, ()) = Request::builder().uri(format!("/x?{text}")).body(()).unwrap().into_parts();
        Query::from_request_parts(&mut parts, &()).await.unwrap()
    }

    #[tokio::test]
    async fn values_are_decoded_and_checked() {
        let mut good = query("caller=%D0%B0+b&limit=200&x=").await;
        assert_eq!(good.optional::<String>("caller").as_deref(), Some("а b"));
        assert_eq!((good.limit(), good.optional::<u8>("x")), (200, None));
        assert!(good.finish().is_ok());
        for bad in ["limit=0", "limit=", "limit=201", "limit=x", "cursor=zz", "nonsense=1", "limit=5&limit=6", "caller=%00", "caller=%FF"] {
            let mut query = query(bad).await;
            let _: (usize, _, Option<String>) = (query.limit(), query.cursor(), query.optional("caller"));
            assert!(query.finish().is_err(), "{bad}");
        }
    }
}
