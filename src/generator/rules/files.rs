//! Reports and attachments, as far as that can be seen without opening them; COLLECT compares their content.

use super::{
    rule::{Findings, Rule, Subject, Weight},
    sitting::Case,
};
use crate::{
    domain::agenda::File,
    generator::{
        format::Datum,
        words::{Words, short},
    },
};

pub static REPORT_MISSING: Rule = Rule {
    code: "report-missing",
    weight: Weight::Warning,
    needs: &[Datum::Reports],
    words: Words {
        ru: "доклад подписан, но файла доклада нет, хотя к другим вопросам он приложен. Приложите его.",
        en: "its report is signed, but there is no file, although other questions have theirs. Attach it.",
        de: "der Bericht ist unterzeichnet, die Datei fehlt aber, obwohl andere Punkte eine haben. Fügen Sie sie bei.",
    },
    subject: Subject::Question(|case, findings| {
        // A body that never sends report files is not told so at every question.
        let sends_reports = case.sitting.agenda.questions.iter().any(|question| question.report.is_some());
        if sends_reports && case.question.status == "REPORT_SIGNED" && case.question.report.is_none() {
            findings.add("/report", &[]);
        }
    }),
};

pub static DIGEST_UNREADABLE: Rule = Rule {
    code: "digest-unreadable",
    weight: Weight::Error,
    needs: &[Datum::Digests],
    words: Words {
        ru: "«{text}» — не контрольная сумма SHA-256 (64 знака 0–9, a–f). Исправьте её.",
        en: "“{text}” is not a SHA-256 digest (64 characters 0–9, a–f). Correct it.",
        de: "„{text}“ ist keine SHA-256-Prüfsumme (64 Zeichen 0–9, a–f). Berichtigen Sie sie.",
    },
    subject: Subject::Question(|case, findings| {
        each_file(case, findings, |file| {
            let digest = file.sha256.as_ref()?;
            let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            (!is_digest).then(|| ("/sha256", short(digest)))
        });
    }),
};

fn each_file(case: &Case<'_>, findings: &mut Findings<'_>, wrong: impl Fn(&File) -> Option<(&'static str, String)>) {
    let report = case.question.report.iter().map(|file| ("/report".to_owned(), file));
    let attachments = case.question.attachments.iter().enumerate().map(|(index, file)| (format!("/attachments/{index}"), file));
    for (pointer, file) in report.chain(attachments) {
        if let Some((field, text)) = wrong(file) {
            findings.add(&format!("{pointer}{field}"), &[("text", &text)]);
        }
    }
}
