//! The names of Legistar's fields: those of its Web API (`EventItemTitle`), and the shortened ones of exports (`Title`).

use crate::generator::format::plain_text::one_line;
use serde_json::Value;

/// What an object is; its name begins the names of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Event,
    EventItem,
    Vote,
    RollCall,
    MatterAttachment,
}

impl Kind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Event => "Event",
            Self::EventItem => "EventItem",
            Self::Vote => "Vote",
            Self::RollCall => "RollCall",
            Self::MatterAttachment => "MatterAttachment",
        }
    }

    /// A field under either of its names.
    #[must_use]
    pub fn field<'v>(self, object: &'v Value, name: &str) -> Option<&'v Value> {
        let short = || object.get(name).or_else(|| object.get(name.strip_suffix("Id").map(|stem| format!("{stem}ID"))?));
        object.get(format!("{}{name}", self.prefix())).or_else(short).filter(|value| !value.is_null())
    }

    /// A text that says something.
    #[must_use]
    pub fn text<'v>(self, object: &'v Value, name: &str) -> Option<&'v str> {
        self.field(object, name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The same on one line.
    #[must_use]
    pub fn line(self, object: &Value, name: &str) -> Option<String> {
        self.text(object, name).map(one_line)
    }

    #[must_use]
    pub fn number(self, object: &Value, name: &str) -> Option<i64> {
        self.field(object, name)?.as_i64()
    }

    /// An id, which may be a number or a text, as text.
    #[must_use]
    pub fn id(self, object: &Value, name: &str) -> Option<String> {
        match self.field(object, name)? {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        }
    }

    /// The name of a field as it is in this object, for pointers.
    #[must_use]
    pub fn name_in(self, object: &Value, name: &str) -> String {
        let full = format!("{}{name}", self.prefix());
        if object.get(&full).is_none() && object.get(name).is_some() { name.to_owned() } else { full }
    }
}

/// The first of several lists that is there and not empty, with its name.
#[must_use]
pub fn first_list<'v, 'n>(object: &'v Value, names: &[&'n str]) -> Option<(&'n str, &'v [Value])> {
    names.iter().find_map(|name| Some((*name, object.get(*name)?.as_array().filter(|list| !list.is_empty())?.as_slice())))
}
