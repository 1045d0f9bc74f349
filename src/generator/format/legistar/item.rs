//! One item of an event as a question: what was said, moved, decided and voted.

use super::{
    ROLLS, VOTES,
    api::Item,
    names::{Kind, first_list},
    roll::{Meaning, Said, said},
};
use crate::{
    domain::agenda::OutcomeCategory,
    generator::{
        format::foreign::{Findings, READY, category_by, media_type_of, outcome, put},
        words::{Words, short},
    },
};
use serde_json::{Map, Value, json};

const ATTACHMENTS: [&str; 3] = ["EventItemMatterAttachments", "Attachments", "MatterAttachments"];

const ANOTHER_ITEM: Words = Words {
    ru: "Вместо голосов по пункту {asked} пришли голоса по пункту {found}; они опущены.",
    en: "Instead of the votes of item {asked} came those of item {found}; they are left out.",
    de: "Statt der Stimmen zu Punkt {asked} kamen die zu Punkt {found}; sie entfallen.",
};
const UNKNOWN_WORD: Words = Words {
    ru: "Неизвестно, что значит «{word}» у {name}; считается как «не голосовал».",
    en: "It is not known what “{word}” of {name} means; it counts as not voting.",
    de: "Was „{word}“ bei {name} bedeutet, ist unbekannt; es zählt als nicht abgestimmt.",
};

/// What clients write, in the order in which it has to be looked for.
const ACTIONS: &[(OutcomeCategory, &[&str])] = &[
    (OutcomeCategory::Withdrawn, &["withdrawn", "removed", "pulled"]),
    (OutcomeCategory::Postponed, &["continued", "deferred", "postponed", "tabled", "held", "laid over", "carried over"]),
    (OutcomeCategory::Rejected, &["fail", "denied", "reject", "defeated", "not approved", "not adopted", "disapproved"]),
    (OutcomeCategory::Elected, &["elected", "appointed", "confirmed"]),
    (OutcomeCategory::Adopted, &["adopted", "approved", "passed", "accepted", "enacted", "carried", "pass"]),
    (OutcomeCategory::Noted, &["received", "filed", "noted", "heard", "presented", "discussed"]),
];

/// The place in the minutes, else in the agenda: an item with 0 stands in the other only.
pub(super) fn place(item: &Value) -> i64 {
    let sequence = |name| Kind::EventItem.number(item, name).filter(|place| *place > 0);
    sequence("MinutesSequence").or_else(|| sequence("AgendaSequence")).unwrap_or(i64::MAX)
}

/// The text that names it; a row without any only makes room on a printed agenda.
pub(super) fn title(item: &Value) -> Option<String> {
    let kind = Kind::EventItem;
    kind.line(item, "Title").or_else(|| kind.line(item, "MatterName")).or_else(|| kind.line(item, "ActionText"))
}

/// What was said about this item, and a warning if it was about another.
pub(super) fn of_item(item: &Item, kind: Kind, entries: &[Value], findings: &mut Findings) -> Vec<Said> {
    let asked = Kind::EventItem.id(&item.object, "Id").unwrap_or_default();
    if let Some(found) = entries.iter().filter_map(|entry| kind.id(entry, "EventItemId")).find(|found| *found != asked) {
        let detail = ANOTHER_ITEM.say(findings.language, &[("asked", &asked), ("found", &short(&found))]);
        let name = if kind == Kind::Vote { VOTES[0] } else { ROLLS[0] };
        findings.warning("votes-of-another-item", &format!("{}/{name}", item.pointer), detail);
        return Vec::new();
    }
    entries.iter().filter_map(|entry| said(kind, entry)).collect()
}

/// The question.
pub(super) fn question(item: &Item, order: usize, votes: &[Said], findings: &mut Findings) -> Value {
    let (kind, object) = (Kind::EventItem, &item.object);
    let mut question = Map::new();
    question.insert("id".to_owned(), json!(kind.id(object, "Id").unwrap_or_else(|| format!("item-{order}"))));
    question.insert("order".to_owned(), json!(order));
    question.insert("number".to_owned(), json!(kind.line(object, "AgendaNumber").unwrap_or_else(|| "–".to_owned())));
    question.insert("title".to_owned(), json!(title(object).unwrap_or_default()));
    question.insert("status".to_owned(), json!(READY));
    let mut heard = Vec::new();
    for name in ["AgendaNote", "MinutesNote"] {
        heard.extend(findings.paragraphs(kind.text(object, name), &format!("{}/{}", item.pointer, kind.name_in(object, name))));
    }
    if let Some(mover) = kind.line(object, "Mover") {
        let seconder = kind.line(object, "Seconder").map(|seconder| format!(", seconded by {seconder}")).unwrap_or_default();
        heard.push(format!("Moved by {mover}{seconder}."));
    }
    put(&mut question, "heard", heard);
    let decision =
        findings.paragraphs(kind.text(object, "ActionText"), &format!("{}/{}", item.pointer, kind.name_in(object, "ActionText")));
    put(&mut question, "decision", decision.into_iter().map(|text| json!({"text": text})).collect::<Vec<_>>());
    let words: Vec<String> = ["ActionName", "PassedFlagName"].iter().filter_map(|name| kind.line(object, name)).collect();
    if !words.is_empty() {
        let words = words.join(" – ");
        question.insert("outcome".to_owned(), outcome(category_by(&words, ACTIONS), &words));
    }
    if let Some(vote) = vote(item, votes, findings) {
        question.insert("vote".to_owned(), vote);
    }
    let recusals = votes.iter().filter(|said| said.meaning == Some(Meaning::Recused));
    put(&mut question, "recusals", recusals.map(|said| json!({"member": said.person, "reason": said.word})).collect::<Vec<_>>());
    let files = first_list(object, &ATTACHMENTS).map(|(_, list)| list.iter().filter_map(attachment).collect::<Vec<_>>());
    put(&mut question, "attachments", files.unwrap_or_default());
    Value::Object(question)
}

fn vote(item: &Item, votes: &[Said], findings: &mut Findings) -> Option<Value> {
    let mut named = Vec::new();
    let (mut favour, mut against, mut abstained, mut silent) = (0, 0, 0, 0);
    for said in votes {
        let (choice, count) = match said.meaning {
            Some(Meaning::For) => ("for", &mut favour),
            Some(Meaning::Against) => ("against", &mut against),
            Some(Meaning::Abstained) => ("abstained", &mut abstained),
            Some(Meaning::Recused | Meaning::Absent) => continue,
            Some(Meaning::NotVoted | Meaning::Present | Meaning::Remote | Meaning::PartOfTheTime) => ("notVoted", &mut silent),
            None => {
                let detail = UNKNOWN_WORD.say(findings.language, &[("word", &short(&said.word)), ("name", &short(&said.name))]);
                findings.warning("vote-word-unknown", &format!("{}/{}", item.pointer, VOTES[0]), detail);
                ("notVoted", &mut silent)
            }
        };
        *count += 1;
        named.push(json!({"member": said.person, "choice": choice}));
    }
    let vote = json!({"ballot": "open", "for": favour, "against": against, "abstained": abstained, "notVoted": silent, "named": named});
    (favour + against + abstained > 0).then_some(vote)
}

fn attachment(file: &Value) -> Option<Value> {
    let kind = Kind::MatterAttachment;
    if kind.field(file, "ShowOnInternetPage") == Some(&Value::Bool(false)) {
        return None;
    }
    let href = kind.text(file, "Hyperlink")?;
    let media_type = media_type_of(kind.text(file, "FileName").unwrap_or(href));
    let mut attachment = Map::new();
    attachment.insert("href".to_owned(), json!(href));
    attachment.insert("mediaType".to_owned(), json!(media_type));
    put(&mut attachment, "name", kind.line(file, "Name"));
    Some(Value::Object(attachment))
}
