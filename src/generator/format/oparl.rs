//! OParl 1.0 and 1.1: a `Meeting`, with what it links to.
//!
//! Fetched are agenda items that are listed by their addresses, the organisations that meet and the body they belong to, the place, those who took part, and files of
//! items. Consultations and papers are not: a protocol says what became of an item, and the body says that in `result` and `resolutionText`.

use super::{
    foreign::{Findings, READY, Translated, category_by, host_of, id_of, list, media_type_of, outcome, put, text},
    plain_text::one_line,
};
use crate::{
    domain::agenda::{Language, OutcomeCategory},
    generator::{
        Halt,
        links::{Link, Links, NoObject},
    },
};
use serde_json::{Map, Value, json};

/// Whether a JSON value is an OParl meeting.
#[must_use]
pub fn is_meeting(value: &Value) -> bool {
    text(value, "type").is_some_and(|kind| kind.starts_with("https://schema.oparl.org/1.") && kind.ends_with("/Meeting"))
}

/// What bodies write, in the order in which it has to be looked for. Over forty different results were seen in one city alone.
const RESULTS: &[(OutcomeCategory, &[&str])] = &[
    (OutcomeCategory::Withdrawn, &["zurückgezogen", "abgesetzt", "von der tagesordnung", "erledigt"]),
    (OutcomeCategory::Postponed, &["vertagt", "verschoben", "zurückgestellt"]),
    (OutcomeCategory::Other, &["keine abstimmung", "verwiesen"]),
    (OutcomeCategory::Rejected, &["abgelehnt", "ablehnung", "nicht zugestimmt", "nicht beschlossen", "nicht angenommen"]),
    (OutcomeCategory::Noted, &["kenntnis"]),
    (OutcomeCategory::Elected, &["gewählt", "bestellt"]),
    (OutcomeCategory::Adopted, &["beschlossen", "zugestimmt", "zustimmung", "angenommen", "genehmigt", "bestätigt", "empfohlen"]),
];

/// Translates a meeting; `asked` is the id that was asked for, `by_address` whether it is the end of the meeting's own.
///
/// # Errors
/// When something that is linked to cannot be had now.
pub async fn translate(
    mut meeting: Value,
    asked: Option<&str>,
    by_address: bool,
    links: &Links<'_>,
    language: Language,
) -> Result<Translated, Halt> {
    let mut findings = Findings::new(language);
    let id = text(&meeting, "id").unwrap_or_default().to_owned();
    if let Some(asked) = asked.filter(|asked| by_address && id_of(&id) != **asked) {
        findings.another_agenda("/id", &id, asked);
    }
    if meeting.get("cancelled") == Some(&Value::Bool(true)) {
        findings.cancelled("/cancelled");
    }
    dereference(&mut meeting, links, &mut findings).await?;

    let mut agenda = Map::new();
    agenda.insert("agendaId".to_owned(), json!(asked.map_or_else(|| id_of(&id), str::to_owned)));
    let name = text(&meeting, "name").map(one_line);
    let organizations: Vec<String> = list(&meeting, "organization").iter().filter_map(|one| text(one, "name").map(one_line)).collect();
    let meets = if organizations.is_empty() { name.clone() } else { Some(organizations.join(", ")) };
    let body = meeting.pointer("/organization/0/body").and_then(|body| text(body, "name")).map(one_line);
    match (name, meets) {
        (Some(name), Some(meets)) => {
            agenda.insert("title".to_owned(), json!(name));
            agenda.insert("body".to_owned(), json!({"organization": body.or_else(|| host_of(&id)).unwrap_or_default(), "name": meets}));
        }
        (None, Some(meets)) => {
            agenda.insert("title".to_owned(), json!("Sitzung"));
            agenda.insert("body".to_owned(), json!({"organization": body.or_else(|| host_of(&id)).unwrap_or_default(), "name": meets}));
        }
        (_, None) => findings.missing("/name"),
    }
    agenda.insert("language".to_owned(), json!("de"));
    let place = meeting.get("location").and_then(|place| {
        let street = || Some([text(place, "streetAddress")?, text(place, "locality")?].join(", "));
        text(place, "description").map(str::to_owned).or_else(street).or_else(|| text(place, "locality").map(str::to_owned))
    });
    put(&mut agenda, "place", place.map(|place| one_line(&place)));
    match text(&meeting, "start") {
        Some(start) => put(&mut agenda, "start", start),
        None => findings.missing("/start"),
    }
    put(&mut agenda, "end", text(&meeting, "end"));
    let members: Vec<Value> = list(&meeting, "participant").iter().filter_map(member).collect();
    agenda.insert("members".to_owned(), Value::from(members));
    let questions = questions(&meeting, &mut findings);
    agenda.insert("questions".to_owned(), Value::from(questions));
    Ok(findings.translated(Some(Value::Object(agenda))))
}

/// Puts objects where there are only their addresses.
async fn dereference(meeting: &mut Value, links: &Links<'_>, findings: &mut Findings) -> Result<(), Halt> {
    let first: Vec<String> = ["organization", "participant", "agendaItem"]
        .iter()
        .flat_map(|field| (0..list(meeting, field).len()).map(move |at| format!("/{field}/{at}")))
        .chain(["/location".to_owned()])
        .collect();
    follow(meeting, first, links, findings).await?;
    let items = list(meeting, "agendaItem").len();
    let mut second = vec!["/organization/0/body".to_owned()];
    for at in 0..items {
        second.push(format!("/agendaItem/{at}/resolutionFile"));
        let files = meeting.pointer(&format!("/agendaItem/{at}")).map_or(0, |item| list(item, "auxiliaryFile").len());
        second.extend((0..files).map(|file| format!("/agendaItem/{at}/auxiliaryFile/{file}")));
    }
    follow(meeting, second, links, findings).await
}

async fn follow(meeting: &mut Value, pointers: Vec<String>, links: &Links<'_>, findings: &mut Findings) -> Result<(), Halt> {
    let linked = pointers.into_iter().filter_map(|pointer| Some((meeting.pointer(&pointer)?.as_str()?.to_owned(), pointer)));
    let wanted: Vec<Link> = linked.map(|(href, pointer)| Link { href, revision: None, pointer }).collect();
    let objects = links.fetch(wanted.clone()).await?;
    for (link, object) in wanted.into_iter().zip(objects) {
        let reason = match object {
            Ok(object) if text(&object, "id") == Some(link.href.as_str()) => {
                if let Some(place) = meeting.pointer_mut(&link.pointer) {
                    *place = object;
                }
                continue;
            }
            Ok(object) => format!("another object came ({})", text(&object, "id").unwrap_or("—")),
            Err(NoObject::Refused(reason) | NoObject::Missing(reason) | NoObject::Unreadable(reason)) => reason,
        };
        findings.not_followed(&link.pointer, &link.href, &reason);
    }
    Ok(())
}

fn member(person: &Value) -> Option<Value> {
    let given = || Some([text(person, "givenName")?, text(person, "familyName")?].join(" "));
    let name = text(person, "name").map(str::to_owned).or_else(given)?;
    Some(json!({"id": text(person, "id")?, "name": one_line(&name), "attendance": "present"}))
}

fn questions(meeting: &Value, findings: &mut Findings) -> Vec<Value> {
    let mut items: Vec<(usize, &Value)> = list(meeting, "agendaItem")
        .iter()
        .enumerate()
        .filter(|(_, item)| item.is_object() && item.get("deleted") != Some(&Value::Bool(true)))
        .collect();
    // Version 1.0 has no `order`: the list is in order there.
    items.sort_by_key(|(at, item)| item.get("order").and_then(Value::as_i64).unwrap_or(i64::try_from(*at).unwrap_or(i64::MAX)));
    let any_numbered = items.iter().any(|(_, item)| text(item, "number").is_some());
    let mut questions = Vec::with_capacity(items.len());
    for (order, (at, item)) in items.into_iter().enumerate() {
        let pointer = format!("/agendaItem/{at}");
        let is_public = item.get("public") != Some(&Value::Bool(false));
        let title = match text(item, "name") {
            Some(name) => one_line(name),
            None if !is_public => "(nicht öffentlich)".to_owned(),
            None => {
                findings.missing(&format!("{pointer}/name"));
                continue;
            }
        };
        let mut question = Map::new();
        let id = text(item, "id").map_or_else(|| format!("agendaItem-{at}"), str::to_owned);
        question.insert("id".to_owned(), json!(id));
        question.insert("order".to_owned(), json!(order));
        // An item without a number among numbered ones is printed without one, not with its place.
        put(&mut question, "number", text(item, "number").map(one_line).or_else(|| any_numbered.then(|| "–".to_owned())));
        question.insert("title".to_owned(), json!(title));
        question.insert("status".to_owned(), json!(READY));
        question.insert("public".to_owned(), json!(is_public));
        put(&mut question, "start", text(item, "start"));
        let decision = findings.paragraphs(text(item, "resolutionText"), &format!("{pointer}/resolutionText"));
        put(&mut question, "decision", decision.into_iter().map(|text| json!({"text": text})).collect::<Vec<_>>());
        if let Some(result) = text(item, "result") {
            question.insert("outcome".to_owned(), outcome(category_by(result, RESULTS), result));
        }
        let files = list(item, "resolutionFile").iter().chain(list(item, "auxiliaryFile"));
        put(&mut question, "attachments", files.filter_map(file).collect::<Vec<_>>());
        questions.push(Value::Object(question));
    }
    questions
}

fn file(file: &Value) -> Option<Value> {
    let href = text(file, "downloadUrl").or_else(|| text(file, "accessUrl"))?;
    let name = text(file, "name").or_else(|| text(file, "fileName"));
    let by_name = || media_type_of(text(file, "fileName").unwrap_or(href)).to_owned();
    let mut attachment = Map::new();
    attachment.insert("href".to_owned(), json!(href));
    attachment.insert("mediaType".to_owned(), json!(text(file, "mimeType").map_or_else(by_name, str::to_owned)));
    put(&mut attachment, "name", name.map(one_line));
    Some(Value::Object(attachment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_sorted_by_what_they_say() {
        for (words, category) in [
            ("einstimmig beschlossen", OutcomeCategory::Adopted),
            ("Zugestimmt zu geändertem Beschlusstext", OutcomeCategory::Adopted),
            ("Stimmengleichheit - abgelehnt", OutcomeCategory::Rejected),
            ("nicht zugestimmt", OutcomeCategory::Rejected),
            ("Kenntnisnahme", OutcomeCategory::Noted),
            ("vertagt", OutcomeCategory::Postponed),
            ("zurückgezogen", OutcomeCategory::Withdrawn),
            ("keine Abstimmung", OutcomeCategory::Other),
            ("verwiesen in den Gemeinderat", OutcomeCategory::Other),
            ("gewählt", OutcomeCategory::Elected),
            ("???", OutcomeCategory::Other),
        ] {
            assert_eq!(category_by(words, RESULTS), category, "{words}");
        }
    }
}
