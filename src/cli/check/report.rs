//! What was found: a table on a terminal, a line for each fault elsewhere, or JSON with the names that `GET /api/agendas/{id}/check` uses.

use crate::{
    cli::{
        Exit,
        output::say,
        refusal::{exit_of, explain},
    },
    domain::failure::{Failure, Fault},
    generator::{facade::CheckReport, words::Words},
};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use rustix::termios::tcgetwinsize;
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _};

/// What came of one agenda.
pub(super) struct Outcome {
    /// As it was named.
    pub(super) named: String,
    pub(super) result: Result<CheckReport, Failure>,
}

pub(super) struct Report {
    outcomes: Vec<Outcome>,
    /// Of a folder, whatever is in it.
    is_list: bool,
}

const ERROR: Words = Words { ru: "ошибка", en: "error", de: "Fehler" };
const WARNING: Words = Words { ru: "замечание", en: "warning", de: "Warnung" };
const READY: Words =
    Words {
        ru: "ошибок нет, замечаний: {warnings}", en: "no errors, warnings: {warnings}", de: "keine Fehler, Warnungen: {warnings}"
    };
const NOT_READY: Words = Words {
    ru: "ошибок: {errors}, замечаний: {warnings}",
    en: "errors: {errors}, warnings: {warnings}",
    de: "Fehler: {errors}, Warnungen: {warnings}",
};
const NOT_APPLICABLE: Words = Words {
    ru: "формат повестки не содержит данных для проверок: {codes}",
    en: "the agenda's format has nothing to check by: {codes}",
    de: "das Format der Tagesordnung enthält nichts für die Prüfungen: {codes}",
};

impl Report {
    pub(super) fn one(outcome: Outcome) -> Self {
        Self { outcomes: vec![outcome], is_list: false }
    }

    pub(super) fn many(outcomes: Vec<Outcome>) -> Self {
        Self { outcomes, is_list: true }
    }

    /// Something in the surroundings weighs more than a fault of an agenda.
    pub(super) fn exit(&self) -> Exit {
        let exits = self.outcomes.iter().map(|outcome| match &outcome.result {
            Ok(report) if report.errors.is_empty() => Exit::Done,
            Ok(_) => Exit::AgendaRefused,
            Err(failure) => exit_of(failure.code),
        });
        let weight = |exit: &Exit| match exit {
            Exit::Done => 0,
            Exit::AgendaRefused => 1,
            _ => 2,
        };
        exits.max_by_key(weight).unwrap_or(Exit::Done)
    }

    pub(super) fn print(&self, as_json: bool) {
        if as_json {
            return say(&self.json().to_string());
        }
        let width = terminal_width();
        for outcome in &self.outcomes {
            match &outcome.result {
                Ok(report) => say(&text(report, &outcome.named, width)),
                Err(failure) => {
                    say(&outcome.named);
                    explain(failure);
                }
            }
        }
    }

    fn json(&self) -> Value {
        let items = self.outcomes.iter().map(|Outcome { named, result }| match result {
            Ok(CheckReport { agenda_id, language: _, errors, warnings, not_applicable }) => json!({
                "agendaId": agenda_id, "ready": errors.is_empty(), "errors": errors, "warnings": warnings, "notApplicable": not_applicable,
            }),
            Err(failure) => json!({ "agenda": named, "ready": false, "failure": failure }),
        });
        if self.is_list { json!({ "items": items.collect::<Value>() }) } else { items.collect::<Vec<_>>().pop().unwrap_or_default() }
    }
}

/// The width of the terminal that reads us, if one does.
fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    // A terminal that does not know its size says 0.
    Some(tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|columns| *columns >= 40).unwrap_or(100))
}

fn text(report: &CheckReport, named: &str, width: Option<u16>) -> String {
    let language = report.language;
    let faults = || {
        let errors = report.errors.iter().map(|fault| (ERROR.text(language), fault));
        errors.chain(report.warnings.iter().map(|fault| (WARNING.text(language), fault)))
    };
    let mut parts = vec![summary(report, named)];
    if faults().next().is_some() {
        parts.push(match width {
            Some(width) => table(faults(), width),
            None => lines(faults()),
        });
    }
    if !report.not_applicable.is_empty() {
        parts.push(NOT_APPLICABLE.say(language, &[("codes", &report.not_applicable.join(", "))]));
    }
    parts.join("\n")
}

fn summary(report: &CheckReport, named: &str) -> String {
    let words = if report.errors.is_empty() { READY } else { NOT_READY };
    let (errors, warnings) = (report.errors.len().to_string(), report.warnings.len().to_string());
    format!("{named}: {}", words.say(report.language, &[("errors", &errors), ("warnings", &warnings)]))
}

fn table<'a>(faults: impl Iterator<Item = (&'a str, &'a Fault)>, width: u16) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for (severity, fault) in faults {
        table.add_row([severity, &fault.detail, &format!("{}\n{}", fault.code, fault.pointer)]);
    }
    // A pointer that is broken in the middle cannot be copied; only where it would leave the sentence no room is it broken all the same.
    let widest = table.column_max_content_widths().last().copied().unwrap_or_default();
    if let Some(column) = table.column_mut(2) {
        let is_short = widest <= width / 2;
        column.set_constraint(if is_short {
            ColumnConstraint::ContentWidth
        } else {
            ColumnConstraint::UpperBoundary(Width::Percentage(50))
        });
    }
    table.to_string()
}

/// For programs that read lines: severity, code, pointer and sentence, separated by tabs.
fn lines<'a>(faults: impl Iterator<Item = (&'a str, &'a Fault)>) -> String {
    let line = |(severity, fault): (&str, &Fault)| {
        // A title may hold a line break.
        let detail = fault.detail.replace(['\n', '\r', '\t'], " ");
        format!("{severity}\t{}\t{}\t{detail}", fault.code, fault.pointer)
    };
    faults.map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{agenda::Language, failure::FailureCode};

    fn fault(detail: &str) -> Fault {
        Fault { code: "text-missing".to_owned(), pointer: "/title".to_owned(), detail: detail.to_owned() }
    }

    fn report(errors: Vec<Fault>) -> CheckReport {
        let agenda_id = "council".parse().unwrap();
        CheckReport {
            agenda_id, language: Language::Ru, errors, warnings: vec![fault("Замечание.")], not_applicable: vec!["no-quorum"]
        }
    }

    fn outcome(result: Result<CheckReport, Failure>) -> Outcome {
        Outcome { named: "a.json".to_owned(), result }
    }

    #[test]
    fn elsewhere_than_on_a_terminal_a_fault_is_a_line() {
        let text = text(&report(vec![fault("Не\nзаполнено.")]), "a.json", None);
        assert_eq!(
            text,
            "a.json: ошибок: 1, замечаний: 1\nошибка\ttext-missing\t/title\tНе заполнено.\nзамечание\ttext-missing\t/title\tЗамечание.\n\
             формат повестки не содержит данных для проверок: no-quorum"
        );
    }

    #[test]
    fn a_table_is_as_wide_as_its_terminal_and_loses_no_word() {
        let long = "Вопрос 1 «О бюджете»: голосов всего 6, а участвовали 5. Сверьте итоги голосования с явкой.";
        let text = text(&report(vec![fault(long)]), "a.json", Some(60));
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(['┌', '│', '├', '└'])).collect();
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{text}");
        for word in long.split(' ') {
            assert!(text.contains(word), "{word} is missing from {text}");
        }
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let good = || outcome(Ok(report(Vec::new())));
        let bad = || outcome(Ok(report(vec![fault("x")])));
        let away = || outcome(Err(Failure::new(FailureCode::AgendaSourceUnavailable, "Away.")));
        assert_eq!(Report::one(good()).exit(), Exit::Done);
        assert_eq!(Report::many(vec![good(), bad()]).exit(), Exit::AgendaRefused);
        assert_eq!(Report::many(vec![bad(), away(), good()]).exit(), Exit::Failed);
        assert_eq!(Report::many(Vec::new()).exit(), Exit::Done);
    }

    #[test]
    fn json_has_the_names_of_the_api() {
        let one = Report::one(outcome(Ok(report(Vec::new())))).json();
        assert_eq!((&one["agendaId"], &one["ready"], &one["warnings"][0]["pointer"]), (&json!("council"), &json!(true), &json!("/title")));
        let many = Report::many(vec![outcome(Err(Failure::new(FailureCode::AgendaNotFound, "Unknown.")))]).json();
        assert_eq!(many["items"][0]["failure"]["code"], "agenda-not-found");
    }
}
