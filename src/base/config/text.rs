//! Values that are written as text, with words for the person who wrote something else.

use bytesize::ByteSize;
use serde::{
    Deserializer,
    de::{Error, Visitor},
};
use std::{fmt, marker::PhantomData, net::SocketAddr};

/// Reads a text with `parse`; `form` says what was wanted, such as "a duration, written like 30s".
pub(super) fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    form: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text { form, parse, value: PhantomData })
}

struct Text<T, P> {
    form: &'static str,
    parse: P,
    value: PhantomData<T>,
}

impl<T, P: Fn(&str) -> Option<T>> Visitor<'_> for Text<T, P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format!("{text:?} is not {}", self.form)))
    }
}

pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    deserialize(deserializer, "a size, written like 64KiB, 1MiB or 2GiB", |text| text.parse().ok())
}

pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    deserialize(deserializer, "an address with a port, written like 127.0.0.1:8080 or [::1]:8080", |text| text.parse().ok())
}
