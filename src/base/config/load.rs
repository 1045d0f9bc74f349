//! From layers to one valid tree, or to everything that is wrong.

use super::{Config, Error, Problem, layer::Layer};
use figment::{
    Figment,
    providers::{Format as _, Toml},
    value::{Dict, Value},
};
use std::{fs, path::PathBuf};

/// The embedded reference.
pub const DEFAULTS: &str = include_str!("../../../config.default.toml");
const DEFAULTS_NAME: &str = "the defaults";

/// Where values come from, later ones over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// All variables; those that begin otherwise than `PROTOCOL_BRIDGE__` are not ours.
    pub environment: Vec<(String, String)>,
    /// The flags that were given: section, key, text.
    pub flags: Vec<(Vec<&'static str>, String)>,
}

/// A configuration that can be used.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// What is allowed and yet dangerous.
    pub warnings: Vec<Problem>,
}

/// Reads, merges and validates.
///
/// # Errors
/// When the file cannot be read or parsed; otherwise with every problem there is, not only the first.
pub fn load(sources: &Sources) -> Result<Loaded, Error> {
    let defaults: Dict = Toml::from_str(DEFAULTS).expect("the embedded reference is TOML; a test reads it");
    let mut layers = Vec::new();
    if let Some(path) = &sources.file {
        layers.push(read(path)?);
    }
    layers.push(Layer::from_environment(&sources.environment));
    let mut flags = Layer::new("the command line", Dict::new());
    for (path, text) in &sources.flags {
        flags.set(&path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>(), Value::from(text.as_str()));
    }
    layers.push(flags);

    let mut problems = Vec::new();
    let mut merged = Figment::from(Layer::new(DEFAULTS_NAME, defaults.clone()));
    for mut layer in layers {
        layer.clean(&mut problems);
        merged = merged.merge(layer);
    }
    let config = extract(merged.clone(), &defaults, &mut problems);
    if let Some(config) = &config {
        let origin = |key: &str| merged.find_metadata(key).map(|metadata| metadata.name.to_string()).filter(|name| name != DEFAULTS_NAME);
        // What was reported already is only there with its default.
        let fresh: Vec<Problem> = config.problems().into_iter().filter(|fresh| !problems.iter().any(|old| old.key == fresh.key)).collect();
        problems.extend(fresh.into_iter().map(|problem| Problem { origin: origin(&problem.key), ..problem }));
    }
    match config {
        Some(config) if problems.is_empty() => {
            let warnings = config.warnings();
            Ok(Loaded { config, warnings })
        }
        _ => Err(Error::Invalid(problems)),
    }
}

fn read(path: &PathBuf) -> Result<Layer, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
    let mut values: Dict = Toml::from_str(&text).map_err(|error| Error::Syntax { path: path.clone(), message: error.to_string() })?;
    values.values_mut().for_each(unquoted_times);
    Ok(Layer::new(path.display().to_string(), values))
}

/// TOML has times of its own, which arrive as a table with one key; ours are texts.
fn unquoted_times(value: &mut Value) {
    match value {
        Value::Dict(tag, keys) => {
            if let Some(Value::String(_, time)) = keys.get("$__toml_private_datetime") {
                *value = Value::String(*tag, time.clone());
            } else {
                keys.values_mut().for_each(unquoted_times);
            }
        }
        Value::Array(_, items) => items.iter_mut().for_each(unquoted_times),
        _ => {}
    }
}

/// The typed tree. serde stops at the first value that does not fit, so each such value is reported and replaced by its default, until the rest fits.
fn extract(mut merged: Figment, defaults: &Dict, problems: &mut Vec<Problem>) -> Option<Config> {
    let most = super::known().len();
    for _ in 0..most {
        let error = match merged.extract::<Config>() {
            Ok(config) => return Some(config),
            Err(error) => error,
        };
        let origin = error.metadata.as_ref().map(|metadata| metadata.name.to_string());
        problems.push(Problem { key: error.path.join("."), origin, reason: error.kind.to_string() });
        merged = merged.merge(default_of(&error.path, defaults)?);
    }
    None
}

/// A layer that puts the default back; a key that has none is emptied.
fn default_of(path: &[String], defaults: &Dict) -> Option<Layer> {
    let mut layer = Layer::new(DEFAULTS_NAME, Dict::new());
    let (section, key) = (path.first()?, path.get(1));
    let nothing = || Value::from(figment::value::Empty::None);
    match (defaults.get(section), key) {
        (Some(Value::Dict(_, keys)), Some(key)) => {
            layer.set(&[section.clone(), key.clone()], keys.get(key).cloned().unwrap_or_else(nothing));
        }
        (Some(default), _) => layer.set(std::slice::from_ref(section), default.clone()),
        // The list of callers.
        (None, _) => layer.set(std::slice::from_ref(section), Value::from(Vec::<Value>::new())),
    }
    Some(layer)
}
