//! One place that values come from: the defaults, a file, the environment, the flags.
//!
//! A layer is cleaned before it is laid over the others: unknown keys are taken out and reported, `…_file` keys are replaced by what the file holds.

use super::{
    Problem,
    keys::{self, documented, known},
    secret::SECRETS,
};
use figment::{
    Metadata, Profile, Provider,
    value::{Dict, Map, Value},
};
use std::fs;

const ENVIRONMENT_PREFIX: &str = "PROTOCOL_BRIDGE__";

#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub name: String,
    pub values: Dict,
}

impl Layer {
    pub(super) fn new(name: impl Into<String>, values: Dict) -> Self {
        Self { name: name.into(), values }
    }

    /// `PROTOCOL_BRIDGE__SECTION__KEY` variables. A single underscore after the name is not ours: Kubernetes sets such variables for a service of this name.
    pub(super) fn from_environment(variables: &[(String, String)]) -> Self {
        let reference = documented();
        let mut layer = Self::new("the environment", Dict::new());
        for (name, text) in variables {
            let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            let path: Vec<String> = key.split("__").map(str::to_lowercase).collect();
            let example = find(&reference, &path);
            // A text stays as it is written, `007` and `true` included; everything else is read as TOML would.
            let value = match example {
                Some(Value::String(..)) | None => Value::from(text.as_str()),
                Some(_) => text.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}),
            };
            layer.set(&path, value);
        }
        layer
    }

    pub(super) fn set(&mut self, path: &[String], value: Value) {
        match path {
            [section, key @ ..] if !key.is_empty() => {
                let entry = self.values.entry(section.clone()).or_insert_with(|| Value::from(Dict::new()));
                if let Value::Dict(_, keys) = entry {
                    keys.insert(key.join("."), value);
                }
            }
            [key] => {
                self.values.insert(key.clone(), value);
            }
            _ => {}
        }
    }

    /// Takes out what nobody knows, and reads secrets' files.
    pub(super) fn clean(&mut self, problems: &mut Vec<Problem>) {
        self.take_unknown(problems);
        self.read_secrets(problems);
    }

    fn take_unknown(&mut self, problems: &mut Vec<Problem>) {
        let known = known();
        let is_section = |name: &str| known.iter().any(|key| key.split_once('.').is_some_and(|(section, _)| section == name));
        let origin = self.name.clone();
        let mut refuse = |key: String| {
            let hint = keys::nearest(&key)
                .map_or_else(|| "config.default.toml lists all keys".to_owned(), |nearest| format!("did you mean {nearest}?"));
            problems.push(Problem::new(key.clone(), format!("unknown key {key}; {hint}")).from(&origin));
        };
        self.values.retain(|name, value| {
            if !is_section(name) {
                let keep = known.contains(name);
                if !keep {
                    match value {
                        Value::Dict(_, keys) if !keys.is_empty() => keys.keys().for_each(|key| refuse(format!("{name}.{key}"))),
                        _ => refuse(name.clone()),
                    }
                }
                return keep;
            }
            let mut take = |keys: &mut Dict| {
                keys.retain(|key, _| {
                    let path = format!("{name}.{key}");
                    let keep = known.contains(&path);
                    if !keep {
                        refuse(path);
                    }
                    keep
                });
            };
            match value {
                Value::Dict(_, keys) => take(keys),
                Value::Array(_, items) => items.iter_mut().for_each(|item| {
                    if let Value::Dict(_, keys) = item {
                        take(keys);
                    }
                }),
                // A section that is no table is refused by its type.
                _ => {}
            }
            true
        });
    }

    fn read_secrets(&mut self, problems: &mut Vec<Problem>) {
        for (section, key) in SECRETS {
            let Some(Value::Dict(_, keys)) = self.values.get_mut(*section) else { continue };
            let file_key = format!("{key}_file");
            let Some(path) = keys.remove(&file_key) else { continue };
            let mut refuse = |reason: String| problems.push(Problem::new(format!("{section}.{file_key}"), reason).from(&self.name));
            if keys.contains_key(*key) {
                refuse(format!("{section}.{key} is given as well; keep one of the two"));
                continue;
            }
            match path.as_str().map(|path| (path, fs::read_to_string(path))) {
                Some((_, Ok(text))) => {
                    keys.insert((*key).to_owned(), Value::from(text.trim_end_matches(['\r', '\n'])));
                }
                Some((path, Err(error))) => refuse(format!("the file {path:?} cannot be read: {error}")),
                None => refuse("is not the path of a file".to_owned()),
            }
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

fn find<'a>(values: &'a Dict, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    match (values.get(first)?, rest) {
        (value, []) => Some(value),
        (Value::Dict(_, keys), rest) => find(keys, rest),
        _ => None,
    }
}
