//! What a rule is, and what it finds.

use super::sitting::{Case, Sitting};
use crate::{
    domain::{agenda::Language, failure::Fault},
    generator::{
        format::{AgendaFormat, Datum},
        words::{Values, Words, short},
    },
};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Never changes its meaning.
    pub code: &'static str,
    pub weight: Weight,
    /// What the rule looks at; in a format that cannot carry all of it the rule is not applicable.
    pub needs: &'static [Datum],
    /// What is wrong and what to do; `{names}` are filled in by the rule.
    pub words: Words,
    pub subject: Subject,
}

impl Rule {
    /// Whether the format can carry what the rule looks at.
    #[must_use]
    pub fn applies_to(&self, format: AgendaFormat) -> bool {
        self.needs.iter().all(|datum| format.carries(*datum))
    }

    #[must_use]
    pub fn severity_in(&self, format: AgendaFormat) -> Severity {
        match self.weight {
            Weight::Error => Severity::Error,
            Weight::ErrorExceptIn(lenient) if !lenient.contains(&format) => Severity::Error,
            Weight::Warning | Weight::ErrorExceptIn(_) => Severity::Warning,
        }
    }
}

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// There is no protocol until it is corrected.
    Error,
    /// Goes on the record.
    Warning,
}

/// How heavy a rule's findings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Error,
    Warning,
    /// An error, but a warning in formats in which most bodies leave it out.
    ErrorExceptIn(&'static [AgendaFormat]),
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// The agenda as a whole.
    Agenda(fn(&Sitting<'_>, &mut Findings<'_>)),
    /// Each question by itself, with the sitting around it.
    Question(fn(&Case<'_>, &mut Findings<'_>)),
}

/// Collects what one rule finds in one subject.
#[derive(Debug)]
pub struct Findings<'a> {
    rule: &'a Rule,
    format: AgendaFormat,
    language: Language,
    /// Pointer of the subject; what is found is told relative to it.
    base: &'a str,
    /// Names the question in each sentence.
    prefix: &'a str,
    found: Vec<Fault>,
}

impl<'a> Findings<'a> {
    fn new(rule: &'a Rule, format: AgendaFormat, language: Language, base: &'a str, prefix: &'a str) -> Self {
        Self { rule, format, language, base, prefix, found: Vec::new() }
    }

    /// Notes a finding at `pointer` below the subject.
    pub fn add(&mut self, pointer: &str, values: Values<'_>) {
        let detail = format!("{}{}", self.prefix, self.rule.words.say(self.language, values));
        self.found.push(Fault { code: self.rule.code.to_owned(), pointer: format!("{}{pointer}", self.base), detail });
    }

    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// In which the agenda came.
    #[must_use]
    pub fn format(&self) -> AgendaFormat {
        self.format
    }
}

const QUESTION: Words =
    Words {
        ru: "Вопрос {number} «{title}»: ", en: "Question {number} “{title}”: ", de: "Tagesordnungspunkt {number} „{title}“: "
    };

/// Runs all rules that look at the agenda as a whole.
#[must_use]
pub fn run_on_agenda(rules: &[&Rule], sitting: &Sitting<'_>, language: Language) -> Vec<(Severity, Fault)> {
    run(rules, sitting.format, language, "", "", |rule, findings| match rule.subject {
        Subject::Agenda(check) => check(sitting, findings),
        Subject::Question(_) => {}
    })
}

/// Runs all rules that look at one question.
#[must_use]
pub fn run_on_question(rules: &[&Rule], case: &Case<'_>, language: Language) -> Vec<(Severity, Fault)> {
    let base = format!("/questions/{}", case.place);
    let prefix = QUESTION.say(language, &[("number", &short(case.number)), ("title", &short(&case.question.title))]);
    run(rules, case.sitting.format, language, &base, &prefix, |rule, findings| match rule.subject {
        Subject::Question(check) => check(case, findings),
        Subject::Agenda(_) => {}
    })
}

fn run(
    rules: &[&Rule],
    format: AgendaFormat,
    language: Language,
    base: &str,
    prefix: &str,
    check: impl Fn(&Rule, &mut Findings<'_>),
) -> Vec<(Severity, Fault)> {
    let mut all = Vec::new();
    for rule in rules.iter().filter(|rule| rule.applies_to(format)) {
        let mut findings = Findings::new(rule, format, language, base, prefix);
        check(rule, &mut findings);
        all.extend(findings.found.into_iter().map(|fault| (rule.severity_in(format), fault)));
    }
    all
}
