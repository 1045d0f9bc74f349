//! Our own agenda JSON: the model itself (`docs/agenda.md`, `docs/agenda.schema.json`).
//!
//! The head, each person and each question are read by themselves, so that one answer names everything that is wrong.

use super::{AgendaFormat, Parsed, json_text, read::too_many_questions, reader};
use crate::{
    domain::{
        agenda::{Agenda, Guest, Language, Member, Question},
        failure::{Failure, Fault},
        ids::AgendaId,
    },
    generator::words::{Words, short},
};
use serde_json::Value;

const NOT_AN_OBJECT: Words = Words {
    ru: "Повестка должна быть объектом JSON: {…}.",
    en: "The agenda must be a JSON object: {…}.",
    de: "Die Tagesordnung muss ein JSON-Objekt sein: {…}.",
};
const NOT_A_LIST: Words =
    Words {
        ru: "Здесь требуется список: […].", en: "A list is needed here: […].", de: "Hier ist eine Liste nötig: […]."
    };
const ANOTHER_AGENDA: Words = Words {
    ru: "Это повестка «{found}», а запрошена «{asked}». Проверьте источник.",
    en: "This is agenda “{found}”, but “{asked}” was asked for. Check the source.",
    de: "Das ist die Tagesordnung „{found}“, gefragt war nach „{asked}“. Prüfen Sie die Quelle.",
};

/// What an agenda is read with.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The id that must stand in it; `None` if any will do.
    pub asked: Option<&'a AgendaId>,
    /// The language of faults; `None`: the agenda's own, else Russian.
    pub language: Option<Language>,
    pub max_questions: usize,
}

/// Reads an agenda.
///
/// # Errors
/// `agenda-too-large` when it has more questions than may be read; everything else is told in [`Parsed::faults`].
pub fn parse(bytes: &[u8], reading: Reading<'_>) -> Result<Parsed, Failure> {
    let language = reading.language.unwrap_or(Language::Ru);
    match json_text::parse(bytes, language) {
        Ok(value) => parse_value(value, reading, AgendaFormat::Native, Vec::new()),
        Err(fault) => Ok(Parsed { faults: vec![fault], ..Parsed::default() }),
    }
}

/// Reads an agenda that is JSON already; `faults` were found on the way, and a question that is null because of one of them is skipped.
///
/// # Errors
/// As [`parse`].
pub fn parse_value(value: Value, reading: Reading<'_>, format: AgendaFormat, mut faults: Vec<Fault>) -> Result<Parsed, Failure> {
    let language = reading.language.unwrap_or_else(|| language_of(&value));
    limit(&value, reading.max_questions)?;
    let Value::Object(mut head) = value else {
        let fault = Fault { code: "not-json".to_owned(), pointer: String::new(), detail: NOT_AN_OBJECT.text(language).to_owned() };
        faults.push(fault);
        return Ok(Parsed { format, faults, ..Parsed::default() });
    };

    let members = list_of(&mut head, "members", language, &mut faults);
    let invited = list_of(&mut head, "invited", language, &mut faults);
    let questions = list_of(&mut head, "questions", language, &mut faults);

    let people =
        (read_all::<Member>(members, "/members", language, &mut faults), read_all::<Guest>(invited, "/invited", language, &mut faults));
    let mut places = Vec::with_capacity(questions.len());
    let mut readable: Vec<Question> = Vec::with_capacity(questions.len());
    for (place, question) in questions.into_iter().enumerate() {
        let before = faults.len();
        let pointer = format!("/questions/{place}");
        if question.is_null() && faults.iter().any(|fault| fault.pointer.split('/').take(3).eq(pointer.split('/'))) {
            continue;
        }
        let question = reader::read(question, &pointer, language, &mut faults);
        // A question with any fault is left out of what follows: rules would only tell the consequences of it.
        if let Some(question) = question
            && faults.len() == before
        {
            places.push(place);
            readable.push(question);
        }
    }
    let head: Option<Agenda> = reader::read(Value::Object(head), "", language, &mut faults);
    if let (Some(head), AgendaFormat::Native | AgendaFormat::Mapped) = (&head, format) {
        // Formats that do not know them leave them out; ours has them.
        let missing = [("chair", head.chair.is_none()), ("secretary", head.secretary.is_none()), ("rules", head.rules.is_none())];
        faults.extend(missing.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| reader::missing(name, "", language)));
    }
    if let (Some(asked), Some(head)) = (reading.asked, &head)
        && asked.as_str() != head.agenda_id
    {
        let detail = ANOTHER_AGENDA.say(language, &[("found", &short(&head.agenda_id)), ("asked", asked.as_str())]);
        faults.push(Fault { code: "agenda-id-differs".to_owned(), pointer: "/agendaId".to_owned(), detail });
    }
    let agenda = match (head, people) {
        (Some(head), (Some(members), Some(invited))) => Some(Agenda { members, invited, questions: readable, ..head }),
        _ => None,
    };
    Ok(Parsed { format, agenda, places, faults, ..Parsed::default() })
}

/// Refuses an agenda with more questions than may be read.
///
/// # Errors
/// `agenda-too-large`.
pub fn limit(agenda: &Value, max_questions: usize) -> Result<(), Failure> {
    let found = agenda.get("questions").and_then(Value::as_array).map_or(0, Vec::len);
    if found > max_questions { Err(too_many_questions(found, max_questions)) } else { Ok(()) }
}

/// The language in which an agenda is.
#[must_use]
pub fn language_of(agenda: &Value) -> Language {
    agenda.get("language").and_then(|word| serde_json::from_value(word.clone()).ok()).unwrap_or(Language::Ru)
}

/// Takes a list out of the head and leaves an empty one, so that the head can be read by itself. A list that is missing stays missing.
fn list_of(head: &mut serde_json::Map<String, Value>, name: &str, language: Language, faults: &mut Vec<Fault>) -> Vec<Value> {
    match head.get_mut(name) {
        Some(Value::Array(list)) => std::mem::take(list),
        Some(other) => {
            *other = Value::Array(Vec::new());
            faults.push(Fault {
                code: "field-wrong".to_owned(),
                pointer: format!("/{name}"),
                detail: NOT_A_LIST.text(language).to_owned(),
            });
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Reads every element; `None` if one of them could not be read, because everything that refers to it would look wrong, too.
fn read_all<T: serde::de::DeserializeOwned>(
    list: Vec<Value>,
    pointer: &str,
    language: Language,
    faults: &mut Vec<Fault>,
) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = list
        .into_iter()
        .enumerate()
        .map(|(place, element)| reader::read(element, &format!("{pointer}/{place}"), language, faults))
        .collect();
    read.into_iter().collect()
}
