//! Which keys there are: as the types say, and as the reference documents them. A test keeps the two the same.

use super::{
    AgendaConfig, Auth, CallerConfig, Config, Database, Documents, Engine, Events, Generator, Http, Legacy, ShutdownConfig, Telemetry,
    load::DEFAULTS, secret::SECRETS,
};
use figment::{
    providers::{Format as _, Toml},
    value::Dict,
};
use serde::{Deserialize, Deserializer, de::value::Error};
use std::cell::Cell;

/// Every key that the types take, as `section.key`; a caller's as `callers.key`; a secret's file as `section.key_file`.
#[must_use]
pub fn known() -> Vec<String> {
    let sections: [(&str, &[&str]); 12] = [
        ("http", fields::<Http>()),
        ("database", fields::<Database>()),
        ("callers", fields::<CallerConfig>()),
        ("legacy", fields::<Legacy>()),
        ("engine", fields::<Engine>()),
        ("agenda", fields::<AgendaConfig>()),
        ("generator", fields::<Generator>()),
        ("documents", fields::<Documents>()),
        ("events", fields::<Events>()),
        ("auth", fields::<Auth>()),
        ("shutdown", fields::<ShutdownConfig>()),
        ("telemetry", fields::<Telemetry>()),
    ];
    let plain = fields::<Config>().iter().filter(|key| !sections.iter().any(|(section, _)| section == *key)).map(|key| (*key).to_owned());
    let nested = sections.iter().flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}.{key}")));
    let files = SECRETS.iter().map(|(section, key)| format!("{section}.{key}_file"));
    plain.chain(nested).chain(files).collect()
}

/// The reference with every key that is commented out (`#key = example`, no space after the mark) filled in: what can be written at all, by example.
///
/// # Panics
/// If the embedded reference is not TOML, which a test refuses.
#[must_use]
pub fn documented() -> Dict {
    let is_example = |line: &str| line.starts_with('#') && line[1..].starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
    let filled: Vec<&str> = DEFAULTS.lines().map(|line| if is_example(line) { &line[1..] } else { line }).collect();
    Toml::from_str(&filled.join("\n")).expect("the embedded reference is TOML; a test reads it")
}

/// The known key that was most likely meant.
pub(super) fn nearest(unknown: &str) -> Option<String> {
    let leaf = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |key: &String| {
        let whole = strsim::damerau_levenshtein(key, unknown);
        // The right key in the wrong section is nearer than any other of that section.
        if leaf(key) == leaf(unknown) { whole.min(1) } else { whole }
    };
    let candidates = known();
    let nearest = candidates.iter().min_by_key(|key| distance(key))?;
    (distance(nearest) <= (unknown.len() / 3).max(2)).then(|| nearest.clone())
}

/// The fields of a struct, as its `Deserialize` asks for them.
fn fields<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let asked = Cell::new([].as_slice());
    // Always an error: the probe notes the question and answers nothing.
    let _ = T::deserialize(Probe(&asked));
    asked.get()
}

struct Probe<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_struct<V: serde::de::Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        Err(serde::de::Error::custom("only asked for its fields"))
    }

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("not a struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_meant() {
        for (unknown, meant) in [
            ("engine.max_runing", Some("engine.max_running")),
            ("engine.listen", Some("http.listen")),
            ("legacy.time_out", Some("legacy.timeout")),
            ("enginne.lease", Some("engine.lease")),
            ("datadir", Some("data_dir")),
            ("xyzzy.plugh", None),
        ] {
            assert_eq!(nearest(unknown).as_deref(), meant, "{unknown}");
        }
    }
}
