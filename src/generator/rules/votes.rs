//! The arithmetic of votes, and who may cast one.

use super::{
    rule::{Findings, Rule, Subject, Weight},
    sitting::{Case, There},
};
use crate::{
    domain::agenda::{Choice, Member, NamedVote, Vote},
    generator::{
        format::Datum,
        words::{Words, short},
    },
};
use std::collections::HashMap;

pub static VOTES_DO_NOT_ADD_UP: Rule = Rule {
    code: "votes-do-not-add-up",
    weight: Weight::Error,
    needs: &[Datum::Counts, Datum::Attendance],
    words: Words {
        ru: "голосов всего {sum} (за — {for}, против — {against}, воздержались — {abstained}, не голосовали — {not_voted}), а участвовали с правом голоса {entitled}. Сверьте итоги голосования с явкой.",
        en: "the votes make {sum} (for {for}, against {against}, abstained {abstained}, not voted {not_voted}), but {entitled} entitled members took part. Compare the count with the attendance.",
        de: "die Stimmen ergeben {sum} (dafür {for}, dagegen {against}, enthalten {abstained}, nicht abgestimmt {not_voted}), beteiligt waren {entitled} Stimmberechtigte. Vergleichen Sie die Auszählung mit der Anwesenheit.",
    },
    subject: Subject::Question(|case, findings| {
        let Some(vote) = &case.question.vote else { return };
        let (sum, entitled) = (sum(vote), case.entitled());
        if sum < u64::from(entitled.at_least) || sum > u64::from(entitled.at_most) {
            findings.add(
                "/vote",
                &[
                    ("sum", &sum.to_string()),
                    ("for", &vote.in_favour.to_string()),
                    ("against", &vote.against.to_string()),
                    ("abstained", &vote.abstained.to_string()),
                    ("not_voted", &vote.not_voted.to_string()),
                    ("entitled", &entitled.to_string()),
                ],
            );
        }
    }),
};

/// An invalid paper of a secret ballot is somebody's vote, too.
fn sum(vote: &Vote) -> u64 {
    let invalid = vote.papers.as_ref().map_or(0, |papers| papers.invalid);
    [vote.in_favour, vote.against, vote.abstained, vote.not_voted, invalid].into_iter().map(u64::from).sum()
}

pub static NAMED_VOTES_DIFFER: Rule = Rule {
    code: "named-votes-differ",
    weight: Weight::Error,
    needs: &[Datum::Counts, Datum::NamedVotes],
    words: Words {
        ru: "поимённо «{choice}» — {named}, а в итоге указано {counted}. Сверьте поимённый список с итогом.",
        en: "by name there are {named} “{choice}”, the count says {counted}. Compare the roll with the count.",
        de: "namentlich sind es {named} „{choice}“, die Auszählung nennt {counted}. Vergleichen Sie die Liste mit der Auszählung.",
    },
    subject: Subject::Question(named_votes_differ),
};

fn named_votes_differ(case: &Case<'_>, findings: &mut Findings<'_>) {
    let Some(vote) = case.question.vote.as_ref().filter(|vote| !vote.named.is_empty()) else { return };
    let named = |choice| u32::try_from(vote.named.iter().filter(|named| named.choice == choice).count()).unwrap_or(u32::MAX);
    // A body may name only those who were against; with one name in favour the list is a full roll.
    let is_full_roll = named(Choice::For) > 0;
    for (choice, counted, field) in
        [(Choice::For, vote.in_favour, "for"), (Choice::Against, vote.against, "against"), (Choice::Abstained, vote.abstained, "abstained")]
    {
        let named = named(choice);
        if named != counted && (named > 0 || is_full_roll) {
            let choice = choice_words(choice).text(findings.language());
            findings
                .add(&format!("/vote/{field}"), &[("choice", choice), ("named", &named.to_string()), ("counted", &counted.to_string())]);
        }
    }
    let not_voted = named(Choice::NotVoted);
    if not_voted > vote.not_voted {
        let choice = choice_words(Choice::NotVoted).text(findings.language());
        findings.add("/vote/notVoted", &[("choice", choice), ("named", &not_voted.to_string()), ("counted", &vote.not_voted.to_string())]);
    }
}

const fn choice_words(choice: Choice) -> Words {
    match choice {
        Choice::For => Words { ru: "за", en: "for", de: "dafür" },
        Choice::Against => Words { ru: "против", en: "against", de: "dagegen" },
        Choice::Abstained => Words { ru: "воздержался", en: "abstained", de: "enthalten" },
        Choice::NotVoted => Words { ru: "не голосовал", en: "not voted", de: "nicht abgestimmt" },
    }
}

pub static VOTED_TWICE: Rule = Rule {
    code: "voted-twice",
    weight: Weight::Error,
    needs: &[Datum::NamedVotes],
    words: Words {
        ru: "{name} указан(а) в поимённом списке дважды. Оставьте один голос.",
        en: "{name} stands in the roll twice. Keep one vote.",
        de: "{name} steht zweimal in der Liste. Lassen Sie eine Stimme stehen.",
    },
    subject: Subject::Question(|case, findings| {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (index, named) in named_of(case).iter().enumerate() {
            if seen.insert(&named.member, index).is_some() {
                let name = short(&case.sitting.name_of(&named.member));
                findings.add(&format!("/vote/named/{index}/member"), &[("name", &name)]);
            }
        }
    }),
};

pub static VOTER_NOT_PRESENT: Rule = Rule {
    code: "voter-not-present",
    weight: Weight::Error,
    needs: &[Datum::NamedVotes, Datum::Attendance],
    words: Words {
        ru: "{name} голосует, но при рассмотрении вопроса отсутствовал(а). Исправьте явку или поимённый список.",
        en: "{name} votes, but was not there at this question. Correct the attendance or the roll.",
        de: "{name} stimmt ab, war bei diesem Punkt aber nicht anwesend. Berichtigen Sie die Anwesenheit oder die Liste.",
    },
    subject: Subject::Question(|case, findings| each_voter(case, findings, |case, member| case.there(member) == There::No)),
};

pub static VOTER_RECUSED: Rule = Rule {
    code: "voter-recused",
    weight: Weight::Error,
    needs: &[Datum::NamedVotes, Datum::Recusals],
    words: Words {
        ru: "{name} голосует, хотя заявлен отвод. Удалите голос или отвод.",
        en: "{name} votes in spite of being recused. Remove the vote or the recusal.",
        de: "{name} stimmt trotz Befangenheit ab. Entfernen Sie die Stimme oder die Befangenheit.",
    },
    subject: Subject::Question(|case, findings| each_voter(case, findings, |case, member| case.is_recused(&member.id))),
};

pub static VOTER_NOT_ENTITLED: Rule = Rule {
    code: "voter-not-entitled",
    weight: Weight::Error,
    needs: &[Datum::NamedVotes, Datum::VotingRights],
    words: Words {
        ru: "{name} голосует, но права голоса не имеет. Исправьте список членов или поимённый список.",
        en: "{name} votes without a voting right. Correct the list of members or the roll.",
        de: "{name} stimmt ab, ist aber nicht stimmberechtigt. Berichtigen Sie die Mitgliederliste oder die Liste der Stimmen.",
    },
    subject: Subject::Question(|case, findings| each_voter(case, findings, |_, member| !member.voting_right)),
};

/// Everyone who is known, has voted, and should not have.
fn each_voter(case: &Case<'_>, findings: &mut Findings<'_>, is_wrong: impl Fn(&Case<'_>, &Member) -> bool) {
    for (index, named) in named_of(case).iter().enumerate() {
        if named.choice == Choice::NotVoted {
            continue;
        }
        if let Some(member) = case.sitting.member(&named.member)
            && is_wrong(case, member)
        {
            findings.add(&format!("/vote/named/{index}/member"), &[("name", &short(&member.name))]);
        }
    }
}

fn named_of<'a>(case: &Case<'a>) -> &'a [NamedVote] {
    case.question.vote.as_ref().map_or(&[], |vote| &vote.named)
}
