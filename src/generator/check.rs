//! CHECK: makes every text printable, runs every rule on every question, and tells all that is wrong at once.
//!
//! Each question is a step by itself. Its key holds the question and what the rules look at around it, so that after one question is corrected only that one is
//! checked again. Rules are pure; a crash in the middle costs their repetition.

use super::{
    Halt, Journal, Meter, compute,
    document::mark_missing,
    format::{AgendaFormat, reader::escape},
    rules::{
        Case, RULES, Severity, Sitting,
        rule::{run_on_agenda, run_on_question},
    },
    snapshot::{canonical, step_key},
    words::Words,
};
use crate::{
    domain::{
        agenda::{Agenda, Language},
        failure::Fault,
        task::Phase,
    },
    engine::executor::Step,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// An agenda that is fit to print, and what the rules say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub agenda: Agenda,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// What was found in one subject; a step's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Diagnostics {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Fault>,
}

const REMOVED: Words = Words {
    ru: "Удалены управляющие знаки: {characters}. Исправьте текст в источнике.",
    en: "Control characters were removed: {characters}. Correct the text at its source.",
    de: "Steuerzeichen wurden entfernt: {characters}. Berichtigen Sie den Text in der Quelle.",
};
const MARKED: Words = Words {
    ru: "Этих знаков нет в шрифтах: {characters}. На их месте напечатан код; замените их.",
    en: "The fonts lack these characters: {characters}. Their codes are printed instead; replace them.",
    de: "Diese Zeichen fehlen in den Schriften: {characters}. Stattdessen wird ihr Code gedruckt; ersetzen Sie sie.",
};

/// Questions in one checkpoint: a transaction for each would take longer than the rules.
const BATCH: usize = 200;

/// Checks an agenda; `places` are the questions' places in their source.
///
/// # Errors
/// [`Halt`] when the journal cannot be read or written; what is wrong with the agenda is in [`Checked`].
pub async fn check(
    agenda: Agenda,
    format: AgendaFormat,
    places: &[usize],
    language: Language,
    journal: &Journal<'_>,
    meter: &Meter,
) -> Result<Checked, Halt> {
    let places: Arc<[usize]> = places.into();
    let Prepared { agenda, mut found, keys, order } = {
        let places = Arc::clone(&places);
        compute(move || Prepared::from(agenda, format, &places, language)).await
    };
    let agenda = Arc::new(agenda);
    let known = journal.known(keys.clone()).await?;
    for batch in order.chunks(BATCH) {
        let missing: Vec<usize> = batch.iter().copied().filter(|&index| stored(&known, &keys[index]).is_none()).collect();
        let (examined, around) = (Arc::clone(&agenda), Arc::clone(&places));
        let mut fresh: HashMap<usize, Diagnostics> = compute(move || {
            let sitting = Sitting::of(&examined, format);
            missing.into_iter().map(|index| (index, examine(&sitting.case(index, around[index]), language))).collect()
        })
        .await;
        let mut steps = Vec::with_capacity(fresh.len());
        for &index in batch {
            let diagnostics = if let Some(diagnostics) = fresh.remove(&index) {
                let name = format!("CHECK/question/{}", index + 1);
                steps.push(Step { name, key: keys[index].clone(), output: json!(diagnostics).to_string() });
                diagnostics
            } else {
                stored(&known, &keys[index]).unwrap_or_default()
            };
            found.errors.extend(diagnostics.errors);
            found.warnings.extend(diagnostics.warnings);
        }
        journal.done(Phase::Check, meter.add(batch.len()), steps).await?;
    }
    Ok(Checked { errors: found.errors, warnings: found.warnings, agenda: Arc::unwrap_or_clone(agenda) })
}

/// What is known before the questions are looked at one by one.
struct Prepared {
    /// With every text made printable.
    agenda: Agenda,
    /// In the agenda as a whole.
    found: Diagnostics,
    /// Of the questions' steps, by index.
    keys: Vec<String>,
    /// Indexes in the order of the agenda.
    order: Vec<usize>,
}

impl Prepared {
    fn from(mut agenda: Agenda, format: AgendaFormat, places: &[usize], language: Language) -> Self {
        let mut found = Diagnostics { errors: Vec::new(), warnings: make_printable(&mut agenda, places, language) };
        let sitting = Sitting::of(&agenda, format);
        found.extend(run_on_agenda(RULES, &sitting, language));
        let order = sitting.in_order();
        let surroundings = surroundings_of(&agenda, format);
        let keys = (0..places.len()).map(|index| key_of(&agenda, &surroundings, index, places[index], language)).collect();
        Self { agenda, found, keys, order }
    }
}

fn stored(known: &HashMap<String, String>, key: &str) -> Option<Diagnostics> {
    serde_json::from_str(known.get(key)?).ok()
}

/// All rules at once, without a journal: for lists of agendas. Computes where it is called.
#[must_use]
pub fn check_now(mut agenda: Agenda, format: AgendaFormat, places: &[usize], language: Language) -> Checked {
    let mut found = Diagnostics { errors: Vec::new(), warnings: make_printable(&mut agenda, places, language) };
    let sitting = Sitting::of(&agenda, format);
    found.extend(run_on_agenda(RULES, &sitting, language));
    for index in sitting.in_order() {
        let diagnostics = examine(&sitting.case(index, places[index]), language);
        found.errors.extend(diagnostics.errors);
        found.warnings.extend(diagnostics.warnings);
    }
    Checked { errors: found.errors, warnings: found.warnings, agenda }
}

impl Diagnostics {
    fn extend(&mut self, found: Vec<(Severity, Fault)>) {
        for (severity, fault) in found {
            match severity {
                Severity::Error => self.errors.push(fault),
                Severity::Warning => self.warnings.push(fault),
            }
        }
    }
}

fn examine(case: &Case<'_>, language: Language) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.extend(run_on_question(RULES, case, language));
    diagnostics
}

/// What rules about one question look at besides the question: the whole head, and of the other questions their ids, places, numbers and times.
fn surroundings_of(agenda: &Agenda, format: AgendaFormat) -> String {
    let head = Agenda { questions: Vec::new(), ..agenda.clone() };
    let others: Vec<Value> = agenda.questions.iter().map(|q| json!([q.id, q.order, q.number, q.start, q.report.is_some()])).collect();
    step_key(&[format.as_str(), &canonical(json!(head)), &Value::from(others).to_string()])
}

fn key_of(agenda: &Agenda, surroundings: &str, index: usize, place: usize, language: Language) -> String {
    let question = canonical(json!(agenda.questions[index]));
    step_key(&["check", surroundings, &index.to_string(), &place.to_string(), &question, &json!(language).to_string()])
}

/// NFC, controls removed, and a visible mark for every character that no font has. Says where.
fn make_printable(agenda: &mut Agenda, places: &[usize], language: Language) -> Vec<Fault> {
    let mut value = serde_json::to_value(&*agenda).expect("the model is plain data with text keys, which always serializes");
    let mut removed = Vec::new();
    clean(&mut value, &mut String::new(), &mut removed);
    *agenda = serde_json::from_value(value).expect("only texts were changed, into other texts");
    let marked = mark_missing(agenda, "");
    let warning = |words: &Words, pointer: &str, characters: &[char]| Fault {
        code: "unprintable-character".to_owned(),
        pointer: at_source(pointer, places),
        detail: words.say(language, &[("characters", &code_points(characters))]),
    };
    removed
        .iter()
        .map(|(pointer, characters)| warning(&REMOVED, pointer, characters))
        .chain(marked.iter().map(|marked| warning(&MARKED, &marked.pointer, &marked.characters)))
        .collect()
}

fn clean(value: &mut Value, pointer: &mut String, removed: &mut Vec<(String, Vec<char>)>) {
    let length = pointer.len();
    match value {
        Value::String(text) => {
            let mut controls: Vec<char> = text.chars().filter(|c| is_unwanted(*c)).collect();
            if !controls.is_empty() || !is_nfc(text) || text.contains('\r') {
                *text = text.replace("\r\n", "\n").chars().filter(|c| !is_unwanted(*c)).nfc().collect();
            }
            if !controls.is_empty() {
                controls.sort_unstable();
                controls.dedup();
                removed.push((pointer.clone(), controls));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                clean(item, pointer, removed);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                pointer.push('/');
                pointer.push_str(&escape(key));
                clean(field, pointer, removed);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Controls mean nothing on paper; line breaks and tabs are white space.
fn is_unwanted(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t' | '\u{85}')
}

fn code_points(characters: &[char]) -> String {
    characters.iter().take(20).map(|c| format!("U+{:04X}", u32::from(*c))).collect::<Vec<_>>().join(", ")
}

/// A pointer into the model as a pointer into the source, where unreadable questions still have their places.
fn at_source(pointer: &str, places: &[usize]) -> String {
    let Some(rest) = pointer.strip_prefix("/questions/") else { return pointer.to_owned() };
    let (index, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match index.parse::<usize>().ok().and_then(|index| places.get(index)) {
        Some(place) => format!("/questions/{place}/{rest}"),
        None => pointer.to_owned(),
    }
}
