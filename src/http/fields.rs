//! Reads a JSON object field by field into values that cannot be wrong, and tells everything that is wrong at once.

use super::{Problem, json_scan::pointer_to};
use crate::domain::failure::Fault;
use serde_json::{Map, Value};

/// An object that is being read.
#[derive(Debug)]
pub struct Fields {
    object: Map<String, Value>,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
}

impl Fields {
    /// # Errors
    /// When the body is not an object.
    pub fn of(body: Value) -> Result<Self, Problem> {
        match body {
            Value::Object(object) => Ok(Self { object, known: Vec::new(), faults: Vec::new() }),
            other => Err(Problem::invalid("wrong-type", "", format!("the body has to be an object, not {}", kind_of(&other)))),
        }
    }

    /// A field that has to be there.
    pub fn required<T>(&mut self, name: &'static str, read: impl FnOnce(Value) -> Result<T, String>) -> Option<T> {
        if !self.object.contains_key(name) {
            self.known.push(name);
            self.refuse(name, "missing", "this field is needed");
            return None;
        }
        self.read(name, read)
    }

    /// A field that may be left out or be null.
    pub fn optional<T>(&mut self, name: &'static str, read: impl FnOnce(Value) -> Result<T, String>) -> Option<T> {
        if self.object.get(name) == Some(&Value::Null) {
            self.object.remove(name);
        }
        self.read(name, read)
    }

    fn read<T>(&mut self, name: &'static str, read: impl FnOnce(Value) -> Result<T, String>) -> Option<T> {
        self.known.push(name);
        match read(self.object.remove(name)?) {
            Ok(value) => Some(value),
            Err(detail) => {
                self.refuse(name, "invalid", detail);
                None
            }
        }
    }

    /// Something is wrong with the field that its own reader cannot see.
    pub fn refuse(&mut self, name: &str, code: &str, detail: impl Into<String>) {
        self.faults.push(Fault { code: code.to_owned(), pointer: pointer_to("", name), detail: detail.into() });
    }

    /// As [`Fields::refuse`], for faults that carry their own pointers.
    pub fn refuse_all(&mut self, faults: Vec<Fault>) {
        self.faults.extend(faults);
    }

    /// Ends the reading: whatever is left is unknown.
    ///
    /// # Errors
    /// Everything that was wrong.
    pub fn finish(mut self) -> Result<(), Problem> {
        let unknown: Vec<String> = self.object.keys().take(20).cloned().collect();
        for name in unknown {
            let detail = match nearest(&name, &self.known) {
                Some(known) => format!("there is no such field; did you mean {known}?"),
                None => format!("there is no such field; there are {}", self.known.join(", ")),
            };
            self.refuse(&name, "unknown-field", detail);
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_all(self.faults)) }
    }
}

fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), *known))
        .filter(|(distance, known)| *distance <= 2.min(known.len() / 2))
        .min()
        .map(|(_, known)| known)
}

/// What a value is, in words.
#[must_use]
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads a string.
///
/// # Errors
/// When it is none.
pub fn string(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(format!("has to be a string, not {}", kind_of(&other))),
    }
}

/// Reads a string that parses as `T`.
///
/// # Errors
/// When it does not.
pub fn parsed<T>(value: Value) -> Result<T, String>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    string(value)?.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::{AgendaId, RequestId};
    use serde_json::json;

    #[test]
    fn everything_wrong_is_told_at_once() {
        let mut fields = Fields::of(json!({ "agendaID": "42", "runAt": 5, "x/y": 1 })).unwrap();
        assert_eq!(fields.required::<AgendaId>("agendaId", parsed), None);
        assert_eq!(fields.optional("runAt", string), None);
        assert_eq!(fields.optional("callbackUrl", string), None);
        let body = fields.finish().unwrap_err().body(RequestId(uuid::Uuid::nil()));
        let body: Value = serde_json::from_str(&body).unwrap();
        let pointers: Vec<_> = body["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect();
        assert_eq!(pointers, ["/agendaId", "/runAt", "/agendaID", "/x~1y"]);
        assert!(body["errors"][2]["detail"].as_str().unwrap().contains("did you mean agendaId"), "{body}");
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        for body in [json!(null), json!([]), json!("x"), json!(1)] {
            assert!(Fields::of(body).is_err());
        }
    }
}
