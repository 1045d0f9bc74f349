//! An event as an agenda: when and where, who was there, and the questions in the order of the minutes.

use super::{
    ROLLS, VOTES,
    api::{Api, Item, entries, items},
    item::{of_item, place, question, title},
    names::Kind,
    roll::Roster,
};
use crate::{
    domain::agenda::Language,
    generator::{
        Halt,
        format::{
            foreign::{Findings, Translated, host_of, put},
            plain_text::one_line,
        },
        links::Links,
    },
};
use jiff::{
    civil::{Date, DateTime, Time},
    tz::TimeZoneDatabase,
};
use serde_json::{Map, Value, json};

/// Whether a JSON value is an event of Legistar's, or a list with one.
#[must_use]
pub fn is_event(value: &Value) -> bool {
    let event = the_event(value);
    let full = event.get("EventId").is_some() && event.get("EventBodyName").is_some();
    full || (event.get("ID").is_some() && event.get("BodyName").is_some() && event.get("Date").is_some())
}

/// Exports are lists of events, often with one.
fn the_event(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([one]) => one,
        _ => value,
    }
}

/// Translates an event; `asked` is the id that was asked for, `by_address` whether it must be the event's own; `zone` is where its clock hangs.
///
/// # Errors
/// When something that has to be asked for cannot be had now.
pub async fn translate(
    value: &Value,
    asked: Option<&str>,
    by_address: bool,
    zone: Option<&str>,
    links: &Links<'_>,
    language: Language,
) -> Result<Translated, Halt> {
    let (event, kind) = (the_event(value), Kind::Event);
    let base = if value.is_array() { "/0" } else { "" };
    let mut findings = Findings::new(language);
    let pointer = |name: &str| format!("{base}/{}", kind.name_in(event, name));
    let Some(id) = kind.id(event, "Id") else {
        findings.missing(&pointer("Id"));
        return Ok(findings.translated(None));
    };
    if let Some(asked) = asked.filter(|asked| by_address && id != **asked) {
        findings.another_agenda(&pointer("Id"), &id, asked);
    }
    if kind.text(event, "AgendaStatusName").is_some_and(|status| status.to_lowercase().starts_with("cancel")) {
        findings.cancelled(&pointer("AgendaStatusName"));
    }
    let Some(body) = kind.line(event, "BodyName") else {
        findings.missing(&pointer("BodyName"));
        return Ok(findings.translated(None));
    };
    let api = Api::of(links.address, &id);
    let items = items(event, base, api.as_ref(), links).await?;
    let mut roster = Roster::default();
    let questions = questions(items, api.as_ref(), links, &mut roster, &mut findings).await?;

    let mut agenda = Map::new();
    agenda.insert("agendaId".to_owned(), json!(asked.unwrap_or(&id)));
    agenda.insert("title".to_owned(), json!(body));
    let site = kind.text(event, "InSiteURL").and_then(host_of);
    let organization = api.map(|api| api.client).or(site).unwrap_or_else(|| body.clone());
    agenda.insert("body".to_owned(), json!({"organization": organization, "name": body}));
    agenda.insert("language".to_owned(), json!("en"));
    put(&mut agenda, "place", kind.line(event, "Location"));
    match start(event, zone) {
        Some(start) => put(&mut agenda, "start", start),
        None => findings.missing(&pointer("Date")),
    }
    agenda.insert("members".to_owned(), Value::from(roster.members()));
    agenda.insert("questions".to_owned(), Value::from(questions));
    Ok(findings.translated(Some(Value::Object(agenda))))
}

/// When the meeting began: the date and the clock's time in the client's zone, or as given where none is known. Exports write one time with an offset.
fn start(event: &Value, zone: Option<&str>) -> Option<String> {
    let date = Kind::Event.text(event, "Date")?;
    if date.parse::<jiff::Timestamp>().is_ok() {
        return Some(date.to_owned());
    }
    let day: Date = date.split('T').next()?.parse().ok()?;
    let clock = Kind::Event.text(event, "Time").and_then(clock).unwrap_or(Time::midnight());
    let local = DateTime::from_parts(day, clock);
    let zoned = || {
        let zoned = TimeZoneDatabase::bundled().get(zone?).ok()?.to_zoned_datetime(local).ok()?;
        Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
    };
    Some(zoned().unwrap_or_else(|| local.to_string()))
}

/// "1:30 PM", or "13:30".
fn clock(text: &str) -> Option<Time> {
    let text = one_line(&text.to_uppercase().replace('.', ""));
    ["%I:%M %p", "%I:%M%p", "%I %p", "%H:%M", "%H:%M:%S"].iter().find_map(|format| Time::strptime(format, &text).ok())
}

async fn questions(
    items: Vec<Item>,
    api: Option<&Api>,
    links: &Links<'_>,
    roster: &mut Roster,
    findings: &mut Findings,
) -> Result<Vec<Value>, Halt> {
    // Rows without any text only make room on a printed agenda.
    let mut items: Vec<Item> = items.into_iter().filter(|item| title(&item.object).is_some()).collect();
    items.sort_by_key(|item| place(&item.object));
    let votes = entries(&items, &VOTES, "votes", api, links, |_| true).await?;
    let rolls = entries(&items, &ROLLS, "rollcalls", api, links, |item| {
        let by_title = || title(item).is_some_and(|title| title.to_lowercase().contains("roll call"));
        Kind::EventItem.number(item, "RollCallFlag").is_some_and(|flag| flag != 0) || by_title()
    })
    .await?;
    let mut questions = Vec::with_capacity(items.len());
    for (order, item) in items.iter().enumerate() {
        let rolls = of_item(item, Kind::RollCall, &rolls[order], findings);
        let votes = of_item(item, Kind::Vote, &votes[order], findings);
        for said in rolls.iter().chain(&votes) {
            roster.note(said);
        }
        questions.push(question(item, order, &votes, findings));
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_clients() {
        let event = json!({"EventDate": "2017-09-12T00:00:00", "EventTime": "1:30 PM"});
        assert_eq!(start(&event, Some("America/Los_Angeles")).as_deref(), Some("2017-09-12T13:30:00-07:00"));
        assert_eq!(start(&event, None).as_deref(), Some("2017-09-12T13:30:00"));
        let export = json!({"Date": "2024-01-03T10:00:00-05:00"});
        assert_eq!(start(&export, None).as_deref(), Some("2024-01-03T10:00:00-05:00"));
        assert_eq!(clock("9 a.m.").map(|time| time.to_string()).as_deref(), Some("09:00:00"));
    }
}
