//! Questions that an agenda lists by reference, `{id, order, href, revision}`: each is fetched and put in its place.

use super::reader;
use crate::{
    domain::{
        agenda::Language,
        failure::{Failure, FailureCode, Fault},
    },
    generator::{
        Halt,
        links::{Link, Links, NoObject},
        words::{Words, short},
    },
};
use serde::Deserialize;
use serde_json::Value;

/// A question in the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    id: String,
    order: u32,
    href: String,
    #[serde(default)]
    revision: Option<String>,
}

const ANOTHER: Words = Words {
    ru: "Вопрос {asked}: по ссылке пришёл другой вопрос ({found}). Проверьте ссылку или источник.",
    en: "Question {asked}: its link leads to another question ({found}). Check the link or the source.",
    de: "Punkt {asked}: der Verweis führt zu einem anderen Punkt ({found}). Prüfen Sie den Verweis oder die Quelle.",
};
const NOT_FOLLOWED: Words = Words {
    ru: "Вопрос {asked}: ссылка не открывается: {reason}. Разрешите узел в agenda.allowed_hosts или исправьте ссылку.",
    en: "Question {asked}: its link is not followed: {reason}. Allow the host in agenda.allowed_hosts, or correct the link.",
    de: "Punkt {asked}: dem Verweis wird nicht gefolgt: {reason}. Erlauben Sie den Host in agenda.allowed_hosts, oder berichtigen Sie den Verweis.",
};
const UNREADABLE: Words = Words {
    ru: "Вопрос {asked} не читается: {reason}",
    en: "Question {asked} cannot be read: {reason}",
    de: "Punkt {asked} ist nicht lesbar: {reason}",
};
const MISSING: Words = Words {
    ru: "Вопрос {asked}: по ссылке ничего нет: {reason}.",
    en: "Question {asked}: there is nothing at its address: {reason}.",
    de: "Punkt {asked}: unter der Adresse ist nichts: {reason}.",
};

/// Puts the questions in their places. A place whose question could not be had becomes null, and its fault is told.
///
/// # Errors
/// When a question cannot be had now: it may be gone because the agenda is changing.
pub async fn put_in(agenda: &mut Value, links: &Links<'_>, language: Language, faults: &mut Vec<Fault>) -> Result<(), Halt> {
    let Some(questions) = agenda.get_mut("questions").and_then(Value::as_array_mut) else { return Ok(()) };
    let (mut places, mut wanted) = (Vec::new(), Vec::new());
    for (place, question) in questions.iter_mut().enumerate().filter(|(_, question)| question.get("href").is_some()) {
        let pointer = format!("/questions/{place}");
        if let Some(reference) = reader::read::<Reference>(question.take(), &pointer, language, faults) {
            wanted.push(Link { href: reference.href.clone(), revision: reference.revision.clone(), pointer });
            places.push((place, reference));
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let objects = links.fetch(wanted).await?;
    let mut gone = Vec::new();
    for ((place, reference), object) in places.into_iter().zip(objects) {
        let asked = short(&reference.id);
        let fault = |code: &str, words: &Words, name: &str, value: &str| Fault {
            code: code.to_owned(),
            pointer: format!("/questions/{place}"),
            detail: words.say(language, &[("asked", &asked), (name, value)]),
        };
        match object {
            Ok(Value::Object(mut object)) => {
                let found = object.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                if found == reference.id {
                    object.insert("order".to_owned(), reference.order.into());
                    questions[place] = Value::Object(object);
                } else {
                    faults.push(fault("linked-object-differs", &ANOTHER, "found", &short(&found)));
                }
            }
            Ok(_) => faults.push(fault("linked-object-differs", &ANOTHER, "found", "—")),
            Err(NoObject::Refused(reason)) => faults.push(fault("link-not-followed", &NOT_FOLLOWED, "reason", &reason)),
            Err(NoObject::Unreadable(reason)) => faults.push(fault("linked-object-unreadable", &UNREADABLE, "reason", &reason)),
            Err(NoObject::Missing(reason)) => gone.push(fault("linked-object-missing", &MISSING, "reason", &reason)),
        }
    }
    if let Some(first) = gone.first() {
        let detail = first.detail.clone();
        let failure = Failure::new(FailureCode::AgendaSourceUnavailable, "A question that the agenda lists is not there.");
        return Err(failure.with_detail(detail).with_errors(gone).into());
    }
    Ok(())
}
