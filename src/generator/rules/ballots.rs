//! Secret ballots: the papers must add up, and nobody is named.

use super::rule::{Rule, Subject, Weight};
use crate::{
    domain::agenda::Ballot,
    generator::{
        format::Datum,
        words::{Words, short},
    },
};

pub static SECRET_BALLOT_WITH_NAMES: Rule = Rule {
    code: "secret-ballot-with-names",
    weight: Weight::Error,
    needs: &[Datum::Papers, Datum::NamedVotes],
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
    weight: Weight::Error,
    needs: &[Datum::Papers],
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
    weight: Weight::Error,
    needs: &[Datum::Papers, Datum::Counts],
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

pub static TOO_MANY_PAPERS: Rule = Rule {
    code: "ballot-papers-do-not-add-up",
    weight: Weight::Error,
    needs: &[Datum::Papers, Datum::Attendance],
    words: Words {
        ru: "выдано бюллетеней {issued}, а участвовали с правом голоса {entitled}. Сверьте число выданных бюллетеней с явкой.",
        en: "{issued} papers were issued, but {entitled} entitled members took part. Compare the papers with the attendance.",
        de: "{issued} Stimmzettel wurden ausgegeben, beteiligt waren {entitled} Stimmberechtigte. Vergleichen Sie die Stimmzettel mit der Anwesenheit.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(papers) = case.question.vote.as_ref().and_then(|vote| vote.papers.as_ref()) else { return };
        let entitled = case.entitled();
        // That the papers themselves do not add up, or the votes, is told by other rules: what they count wrongly is wrong here, too.
        let add_up = u64::from(papers.issued) == u64::from(papers.found) + u64::from(papers.not_returned);
        if papers.issued > entitled.at_most && papers.found <= entitled.at_most && add_up {
            findings.add("/vote/papers/issued", &[("issued", &papers.issued.to_string()), ("entitled", &entitled.to_string())]);
        }
    }),
};

pub static PAPERS_MISSING: Rule = Rule {
    code: "ballot-papers-missing",
    weight: Weight::Warning,
    needs: &[Datum::Papers],
    words: Words {
        ru: "голосование тайное, а счёт бюллетеней не указан. Внесите данные протокола счётной комиссии.",
        en: "the ballot is secret, but its papers are not accounted for. Enter the tellers' figures.",
        de: "die Abstimmung ist geheim, die Stimmzettel sind aber nicht nachgewiesen. Tragen Sie die Zahlen der Zählkommission ein.",
    },
    subject: Subject::Question(|case, findings| {
        if case.question.vote.as_ref().is_some_and(|vote| vote.ballot == Ballot::Secret && vote.papers.is_none()) {
            findings.add("/vote", &[]);
        }
    }),
};

pub static TELLERS_MISSING: Rule = Rule {
    code: "tellers-missing",
    weight: Weight::Warning,
    needs: &[Datum::Papers, Datum::Officers],
    words: Words {
        ru: "Голосование по вопросу {number} тайное, а счётная комиссия не указана. Укажите её членов (tellers).",
        en: "The ballot on question {number} is secret, but no tellers are named. Name them (tellers).",
        de: "Die Abstimmung zu Punkt {number} ist geheim, eine Zählkommission ist aber nicht angegeben. Geben Sie sie an (tellers).",
    },
    subject: Subject::Agenda(|sitting, findings| {
        let is_secret = |index: &usize| sitting.agenda.questions[*index].vote.as_ref().is_some_and(|vote| vote.ballot == Ballot::Secret);
        if sitting.agenda.tellers.is_empty()
            && let Some(index) = sitting.in_order().into_iter().find(is_secret)
        {
            findings.add("/tellers", &[("number", &short(sitting.number(index)))]);
        }
    }),
};
