//! Our own agenda JSON: the model itself (`docs/agenda.md`, `docs/agenda.schema.json`).
//!
//! The head, each person and each question are read by themselves, so that one answer names everything that is wrong.

use super::{AgendaFormat, Parsed, json_text, reader};
use crate::{
    domain::{
        agenda::{Agenda, Guest, Language, Member, Question},
        failure::{Failure, FailureCode, Fault},
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
    let value = match json_text::parse(bytes, language) {
        Ok(value) => value,
        Err(fault) => return Ok(Parsed { faults: vec![fault], ..Parsed::default() }),
    };
    let Value::Object(mut head) = value else {
        let fault = Fault { code: "not-json".to_owned(), pointer: String::new(), detail: NOT_AN_OBJECT.text(language).to_owned() };
        return Ok(Parsed { faults: vec![fault], ..Parsed::default() });
    };
    let language = reading.language.unwrap_or_else(|| language_of(&head));
    let mut faults = Vec::new();

    let members = list_of(&mut head, "members", language, &mut faults);
    let invited = list_of(&mut head, "invited", language, &mut faults);
    let questions = list_of(&mut head, "questions", language, &mut faults);
    if questions.len() > reading.max_questions {
        let limit = format!("generator.max_questions is {}, the agenda has {} questions", reading.max_questions, questions.len());
        return Err(Failure::new(FailureCode::AgendaTooLarge, "The agenda has too many questions.").with_detail(limit));
    }

    let people =
        (read_all::<Member>(members, "/members", language, &mut faults), read_all::<Guest>(invited, "/invited", language, &mut faults));
    let mut places = Vec::with_capacity(questions.len());
    let mut readable: Vec<Question> = Vec::with_capacity(questions.len());
    for (place, question) in questions.into_iter().enumerate() {
        let before = faults.len();
        let question = reader::read(question, &format!("/questions/{place}"), language, &mut faults);
        // A question with any fault is left out of what follows: rules would only tell the consequences of it.
        if let Some(question) = question
            && faults.len() == before
        {
            places.push(place);
            readable.push(question);
        }
    }
    let head: Option<Agenda> = reader::read(Value::Object(head), "", language, &mut faults);
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
    Ok(Parsed { format: AgendaFormat::Native, agenda, places, faults })
}

fn language_of(head: &serde_json::Map<String, Value>) -> Language {
    head.get("language").and_then(|word| serde_json::from_value(word.clone()).ok()).unwrap_or(Language::Ru)
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
