//! Secret ballots: the papers must add up, and nobody is named.

use super::rule::{Rule, Severity, Subject};
use crate::{domain::agenda::Ballot, generator::words::Words};

pub static SECRET_BALLOT_WITH_NAMES: Rule = Rule {
    code: "secret-ballot-with-names",
    severity: Severity::Error,
    words: Words {
        ru: "голосование тайное, но указано, кто как голосовал. Удалите поимённый список.",
        en: "the ballot is secret, but the votes are given by name. Remove the roll.",
        de: "die Abstimmung ist geheim, die Stimmen sind aber namentlich angegeben. Entfernen Sie die Liste.",
    },
    subject: Subject::Question(|case, findings| {
        if case.question.vote.as_ref().is_some_and(|vote| vote.ballot == Ballot::Secret && !vote.named.is_empty()) {
            findings.add("/vote/named", &[]);
        }
    }),
};

pub static PAPERS_ISSUED: Rule = Rule {
    code: "ballot-papers-do-not-add-up",
    severity: Severity::Error,
    words: Words {
        ru: "выдано бюллетеней {issued}, а в урне ({found}) и невозвращённых ({not_returned}) вместе {sum}. Сверьте протокол счётной комиссии.",
        en: "{issued} papers were issued, but those found ({found}) and not returned ({not_returned}) make {sum}. Compare with the tellers' record.",
        de: "{issued} Stimmzettel wurden ausgegeben, gefundene ({found}) und nicht zurückgegebene ({not_returned}) ergeben {sum}. Vergleichen Sie mit der Niederschrift der Zählkommission.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(papers) = case.question.vote.as_ref().and_then(|vote| vote.papers.as_ref()) else { return };
        let sum = u64::from(papers.found) + u64::from(papers.not_returned);
        if u64::from(papers.issued) != sum {
            findings.add(
                "/vote/papers/issued",
                &[
                    ("issued", &papers.issued.to_string()),
                    ("found", &papers.found.to_string()),
                    ("not_returned", &papers.not_returned.to_string()),
                    ("sum", &sum.to_string()),
                ],
            );
        }
    }),
};

pub static PAPERS_FOUND: Rule = Rule {
    code: "ballot-papers-do-not-add-up",
    severity: Severity::Error,
    words: Words {
        ru: "в урне {found} бюллетеней, а за ({for}), против ({against}), воздержавшихся ({abstained}) и недействительных ({invalid}) вместе {sum}. Пересчитайте бюллетени.",
        en: "{found} papers were found, but for ({for}), against ({against}), abstained ({abstained}) and invalid ({invalid}) make {sum}. Count the papers again.",
        de: "{found} Stimmzettel wurden gefunden, dafür ({for}), dagegen ({against}), enthalten ({abstained}) und ungültig ({invalid}) ergeben {sum}. Zählen Sie die Stimmzettel nach.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(vote) = &case.question.vote else { return };
        let Some(papers) = &vote.papers else { return };
        let sum: u64 = [vote.in_favour, vote.against, vote.abstained, papers.invalid].into_iter().map(u64::from).sum();
        if u64::from(papers.found) != sum {
            findings.add(
                "/vote/papers/found",
                &[
                    ("found", &papers.found.to_string()),
                    ("for", &vote.in_favour.to_string()),
                    ("against", &vote.against.to_string()),
                    ("abstained", &vote.abstained.to_string()),
                    ("invalid", &papers.invalid.to_string()),
                    ("sum", &sum.to_string()),
                ],
            );
        }
    }),
};
