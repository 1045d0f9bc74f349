//! One question as it is printed: heard, discussed, decided, voted.

use super::{
    annexes::{Numbered, of_question},
    build::Context,
    dates,
    model::{Block, Column, Role, Section, Table, Width, section_label},
    text::{capitalized, line, paragraphs, sentence},
};
use crate::domain::agenda::{Ballot, Choice, OutcomeCategory, Question, Vote};

/// The section of a question; `place` counts from 1.
pub(super) fn build(context: &Context<'_>, question: &Question, place: usize, annexes: &[Numbered<'_>]) -> Section {
    let labels = context.words.labels();
    let number = printed_number(question, place);
    let mut blocks = Vec::new();
    if !question.public {
        blocks.push(Block::Note { text: labels.closed_session.to_owned() });
    }
    for recusal in &question.recusals {
        let reason = recusal.reason.as_deref().map(line);
        blocks.push(Block::Note { text: context.words.recused(&context.name(&recusal.member), reason.as_deref()) });
    }
    heard(context, question, annexes, &mut blocks);
    discussed(context, question, &mut blocks);
    decided(context, question, &number, &mut blocks);
    if let Some(vote) = &question.vote {
        voted(context, vote, &mut blocks);
    }
    outcome(context, question, &mut blocks);
    for dissent in question.vote.iter().flat_map(|vote| &vote.dissent) {
        let name = context.name(&dissent.member);
        let text = spoken(&name, &dissent.text);
        push_speech(&text, Some(labels.dissent), &mut blocks);
    }
    Section {
        id: question.id.clone(),
        label: section_label(place),
        title: line(&question.title),
        rapporteur: question.rapporteur.as_deref().map(|id| format!("{}: {}", labels.rapporteur, context.person(id))),
        number,
        blocks,
    }
}

/// The printed number without its full stop; the place where the agenda gives none.
pub(super) fn printed_number(question: &Question, place: usize) -> String {
    let given = question.number.as_deref().map(line).unwrap_or_default();
    let given = given.strip_suffix('.').unwrap_or(&given);
    if given.is_empty() { place.to_string() } else { given.to_owned() }
}

fn heard(context: &Context<'_>, question: &Question, annexes: &[Numbered<'_>], blocks: &mut Vec<Block>) {
    let reports = of_question(annexes, &question.id, Role::Report);
    let papers = of_question(annexes, &question.id, Role::Attachment);
    if question.rapporteur.is_none() && question.heard.is_empty() && reports.is_empty() && papers.is_empty() {
        return;
    }
    blocks.push(Block::Caption { text: format!("{}:", context.words.labels().heard) });
    let mut texts = question.heard.iter().flat_map(|text| paragraphs(text));
    match (question.rapporteur.as_deref(), texts.next()) {
        (Some(rapporteur), Some(first)) => {
            blocks.push(Block::Paragraph { text: format!("{}\u{a0}— {first}", context.person(rapporteur)) });
        }
        (Some(rapporteur), None) => blocks.push(Block::Paragraph { text: sentence(&context.person(rapporteur)) }),
        (None, Some(first)) => blocks.push(Block::Paragraph { text: first }),
        (None, None) => {}
    }
    blocks.extend(texts.map(|text| Block::Paragraph { text }));
    blocks.extend(reports.iter().map(|report| Block::Paragraph { text: context.words.report_attached(report.number) }));
    if !papers.is_empty() {
        let files: Vec<_> = papers.iter().map(|paper| (paper.number, line(&paper.annex.name))).collect();
        blocks.push(Block::Paragraph { text: context.words.files_attached(&files) });
    }
}

fn discussed(context: &Context<'_>, question: &Question, blocks: &mut Vec<Block>) {
    if question.discussed.is_empty() {
        return;
    }
    blocks.push(Block::Caption { text: format!("{}:", context.words.labels().discussed) });
    for speech in &question.discussed {
        push_speech(&spoken(&context.name(&speech.speaker), &speech.text), None, blocks);
    }
}

/// «Фамилия И. О. — what was said», a paragraph a line.
fn spoken(name: &str, text: &str) -> Vec<String> {
    let mut lines = paragraphs(text);
    let first = lines.next().map_or_else(|| sentence(name), |first| format!("{name}\u{a0}— {first}"));
    std::iter::once(first).chain(lines).collect()
}

fn push_speech(lines: &[String], label: Option<&str>, blocks: &mut Vec<Block>) {
    for (at, text) in lines.iter().enumerate() {
        blocks.push(match label {
            Some(label) if at == 0 => Block::Field { label: format!("{label}:"), text: text.clone() },
            _ => Block::Paragraph { text: text.clone() },
        });
    }
}

fn decided(context: &Context<'_>, question: &Question, number: &str, blocks: &mut Vec<Block>) {
    if question.decision.is_empty() {
        return;
    }
    blocks.push(Block::Caption { text: format!("{}:", context.words.labels().decided) });
    for (at, point) in question.decision.iter().enumerate() {
        let printed = point.number.as_deref().map(line).filter(|given| !given.is_empty());
        let printed = printed.unwrap_or_else(|| format!("{number}.{}", at + 1));
        let printed = printed.strip_suffix('.').unwrap_or(&printed);
        let mut lines = paragraphs(&point.text);
        let text = lines.next().unwrap_or_default();
        let mut details: Vec<String> = lines.collect();
        let mut terms = Vec::new();
        if let Some(responsible) = &point.responsible {
            // An id of a person of the agenda, or whoever is named in words.
            terms.push(context.words.responsible(&context.name(responsible)));
        }
        if let Some(due) = &point.due {
            let due = dates::date(due).map_or_else(|| line(due), |due| context.words.date(due));
            terms.push(context.words.due(&due));
        }
        if !terms.is_empty() {
            details.push(terms.iter().map(|term| sentence(term)).collect::<Vec<_>>().join(" "));
        }
        blocks.push(Block::Point { number: format!("{printed}."), text, details });
    }
}

fn voted(context: &Context<'_>, vote: &Vote, blocks: &mut Vec<Block>) {
    let labels = context.words.labels();
    if vote.ballot == Ballot::Secret {
        let text = context
            .words
            .papers(vote)
            .map_or_else(|| context.words.voted(vote), |papers| format!("{papers} {}", capitalized(&context.words.voted(vote))));
        blocks.push(Block::Field { label: format!("{}:", labels.secret_ballot), text });
        return;
    }
    blocks.push(Block::Field { label: format!("{}:", labels.voted), text: context.words.voted(vote) });
    if vote.named.is_empty() {
        return;
    }
    let choices = [
        (Choice::For, labels.in_favour),
        (Choice::Against, labels.against),
        (Choice::Abstained, labels.abstained),
        (Choice::NotVoted, labels.not_voted),
    ];
    let rows = choices.into_iter().filter_map(|(choice, word)| {
        let names: Vec<_> = vote.named.iter().filter(|named| named.choice == choice).map(|named| context.name(&named.member)).collect();
        (!names.is_empty()).then(|| vec![word.to_owned(), names.len().to_string(), names.join(", ")])
    });
    blocks.push(Block::Table(Table {
        caption: Some(format!("{}:", labels.named_votes)),
        columns: vec![
            Column { title: labels.choice.to_owned(), width: Width::Medium },
            Column { title: labels.count.to_owned(), width: Width::Narrow },
            Column { title: labels.members.to_owned(), width: Width::Wide },
        ],
        rows: rows.collect(),
    }));
}

/// What became of the question: in the body's own words, in ours for its category, or as the votes say.
fn outcome(context: &Context<'_>, question: &Question, blocks: &mut Vec<Block>) {
    let words = match (&question.outcome, &question.vote) {
        (Some(outcome), vote) => match (outcome.words.as_deref().map(line).filter(|words| !words.is_empty()), vote) {
            (Some(own), _) => own,
            // The votes say more than the category.
            (None, Some(vote)) if outcome.category == OutcomeCategory::Adopted => {
                context.words.adopted(vote.against == 0 && vote.abstained == 0).to_owned()
            }
            (None, _) => context.words.outcome(outcome.category).to_owned(),
        },
        (None, Some(vote)) if !question.decision.is_empty() && vote.in_favour > vote.against => {
            context.words.adopted(vote.against == 0 && vote.abstained == 0).to_owned()
        }
        _ => return,
    };
    blocks.push(Block::Field { label: format!("{}:", context.words.labels().outcome), text: sentence(&words) });
}
