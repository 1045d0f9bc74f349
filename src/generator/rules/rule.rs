//! What a rule is, and what it finds.

use super::sitting::{Case, Sitting};
use crate::{
    domain::{agenda::Language, failure::Fault},
    generator::words::{Values, Words, short},
};

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Never changes its meaning.
    pub code: &'static str,
    pub severity: Severity,
    /// What is wrong and what to do; `{names}` are filled in by the rule.
    pub words: Words,
    pub subject: Subject,
}

/// What a finding means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// There is no protocol until it is corrected.
    Error,
    /// Goes on the record.
    Warning,
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
    language: Language,
    /// Pointer of the subject; what is found is told relative to it.
    base: &'a str,
    /// Names the question in each sentence.
    prefix: &'a str,
    found: Vec<Fault>,
}

impl<'a> Findings<'a> {
    fn new(rule: &'a Rule, language: Language, base: &'a str, prefix: &'a str) -> Self {
        Self { rule, language, base, prefix, found: Vec::new() }
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
}

const QUESTION: Words =
    Words {
        ru: "Вопрос {number} «{title}»: ", en: "Question {number} “{title}”: ", de: "Tagesordnungspunkt {number} „{title}“: "
    };

/// Runs all rules that look at the agenda as a whole.
#[must_use]
pub fn run_on_agenda<'r>(rules: &'r [&'r Rule], sitting: &Sitting<'_>, language: Language) -> Vec<(&'r Rule, Fault)> {
    run(rules, language, "", "", |rule, findings| match rule.subject {
        Subject::Agenda(check) => check(sitting, findings),
        Subject::Question(_) => {}
    })
}

/// Runs all rules that look at one question.
#[must_use]
pub fn run_on_question<'r>(rules: &'r [&'r Rule], case: &Case<'_>, language: Language) -> Vec<(&'r Rule, Fault)> {
    let base = format!("/questions/{}", case.place);
    let prefix = QUESTION.say(language, &[("number", &short(case.number)), ("title", &short(&case.question.title))]);
    run(rules, language, &base, &prefix, |rule, findings| match rule.subject {
        Subject::Question(check) => check(case, findings),
        Subject::Agenda(_) => {}
    })
}

fn run<'r>(
    rules: &'r [&'r Rule],
    language: Language,
    base: &str,
    prefix: &str,
    check: impl Fn(&Rule, &mut Findings<'_>),
) -> Vec<(&'r Rule, Fault)> {
    let mut all = Vec::new();
    for rule in rules {
        let mut findings = Findings::new(rule, language, base, prefix);
        check(rule, &mut findings);
        all.extend(findings.found.into_iter().map(|fault| (*rule, fault)));
    }
    all
}
