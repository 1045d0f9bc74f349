//! What people write is printed as they wrote it, whatever it looks like to a typesetter.

use crate::{
    document_reading::{convert, of_docx, of_html, of_model, of_pdf, of_text_file},
    document_same::alike,
    document_support::{Made, draft, make, sample, squeezed},
};
use protocol_bridge::domain::{
    agenda::{Agenda, Dissent, Language, Outcome, OutcomeCategory, Recusal},
    protocol::Format,
};
use std::fs;

/// What some markup language or other would make something of.
const HOSTILE: &[&str] = &[
    "#import \"@preview/x:1.0.0\": y",
    "#read(\"/etc/passwd\")",
    "#image(\"/etc/hostname\")",
    "#panic()",
    "#{while true {}}",
    "#evil[$x$]",
    "$",
    "$$",
    "$x^2$",
    "@nobody",
    "<label>",
    "<q-0001>",
    "[",
    "]",
    "[#set page(margin:0pt)]",
    "\\",
    "конец\\",
    "\"",
    "\"кавычки\"",
    "*а*",
    "_а_",
    "`",
    "```",
    "= Т",
    "== Т",
    "- п",
    "+ п",
    "1. п",
    "/ т: о",
    "// к",
    "/* к",
    "*/",
    "https://a/b_c*d",
    "~",
    "--",
    "---",
    "...",
    "-?",
    "'",
    "it's",
    "\\u{41}",
    "\\u0041",
    "{{x}}",
    "{% x %}",
    "&amp;",
    "&#65;",
    "<b>",
    "<script>alert(1)</script>",
    "]]>",
    "%s",
    "fi ffi ff",
    "<<",
    ">>",
    "^^",
];

/// One question with a text in every field that is printed.
fn filled(text: &str) -> Agenda {
    let mut agenda = sample("slow-council");
    let put = |field: &mut String| text.clone_into(field);
    agenda.members.truncate(4);
    agenda.members[3].attendance = protocol_bridge::domain::agenda::Attendance::Absent;
    agenda.tellers = vec![agenda.members[1].id.clone()];
    agenda.number = Some(text.to_owned());
    agenda.place = Some(text.to_owned());
    put(&mut agenda.title);
    put(&mut agenda.body.organization);
    put(&mut agenda.body.name);
    for member in &mut agenda.members {
        put(&mut member.name);
        member.position = Some(text.to_owned());
        member.absence_reason = Some(text.to_owned());
    }
    for guest in &mut agenda.invited {
        put(&mut guest.name);
        guest.position = Some(text.to_owned());
    }
    agenda.questions.truncate(1);
    let report = sample("council-2026-11").questions[0].report.clone();
    let question = &mut agenda.questions[0];
    put(&mut question.title);
    question.number = Some(text.to_owned());
    question.heard = vec![
        text.to_owned(),
        format!("{text} в начале"),
        format!("в середине {text} строки"),
        format!("строка\n{text}"),
        format!("в конце {text}"),
    ];
    question.discussed = vec![protocol_bridge::domain::agenda::Speech { speaker: agenda.members[0].id.clone(), text: text.to_owned() }];
    for point in &mut question.decision {
        put(&mut point.text);
        point.number = Some(text.to_owned());
        point.responsible = Some(text.to_owned());
        point.due = Some(text.to_owned());
    }
    question.report = report;
    question.report.as_mut().unwrap().name = Some(text.to_owned());
    question.attachments = question.report.iter().cloned().collect();
    question.recusals = vec![Recusal { member: agenda.members[2].id.clone(), reason: Some(text.to_owned()) }];
    question.outcome = Some(Outcome { category: OutcomeCategory::Other, words: Some(text.to_owned()) });
    question.vote.as_mut().unwrap().dissent = vec![Dissent { member: agenda.members[1].id.clone(), text: text.to_owned() }];
    agenda
}

/// How often the harmless text is printed, and on how many pages, is how often the hostile one must be.
#[test]
fn nothing_is_read_as_markup() {
    let harmless = make(&filled("Слово"), Language::Ru);
    let times = squeezed(&harmless.text()).matches("Слово").count();
    assert!(times >= 35, "the text stands in every field: {times}");
    for hostile in HOSTILE {
        let made = make(&filled(hostile), Language::Ru);
        let (text, wanted) = (squeezed(&made.text()), squeezed(hostile));
        // A short one also stands in our own words.
        let found = text.matches(&wanted).count();
        let own = wanted.chars().all(|c| c == '.' || c == '-') || wanted == "конец\\";
        assert!(if own { found > 0 } else { found >= times }, "{hostile}: {found} times, not {times}:\n{text}");
        assert_eq!(made.pages, harmless.pages, "{hostile}");
        same_in_every_format(&made, hostile);
    }
}

/// The same letters in the same order in PDF, HTML and DOCX.
fn same_in_every_format(made: &Made, what: &str) {
    let wanted = of_model(&made.model);
    alike(&of_pdf(&made.pdf, &made.model), &wanted, &format!("{what} in the PDF"));
    alike(&of_html(&fs::read_to_string(made.render(Format::Html)).unwrap()), &wanted, &format!("{what} in the HTML"));
    alike(&of_docx(&made.render(Format::Docx)), &wanted, &format!("{what} in the DOCX"));
}

/// All of it at once, read by a word processor.
#[test]
fn a_word_processor_reads_hostile_text_as_it_was_written() {
    let mut agenda = filled("Слово");
    let question = agenda.questions[0].clone();
    let texts =
        [HOSTILE, &["Праздник 😀 漢\u{202e}\u{7}\u{e000}!", "от «שלום, 12 עולם», да", "мягкий\u{ad}перенос", "a\u{2011}b"]].concat();
    agenda.questions = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let mut question = question.clone();
            question.id = format!("q{at}");
            question.order = u32::try_from(at).unwrap();
            (*text).clone_into(&mut question.title);
            question.heard = vec![(*text).to_owned(), format!("строка\n{text}")];
            question.report = None;
            question.attachments.clear();
            question
        })
        .collect();
    let draft = draft(&agenda, Language::Ru);
    convert(&[&draft.render(Format::Docx)], "txt:Text (encoded):UTF8", draft.folder.path());
    alike(&of_text_file(&draft.folder.path().join("document.txt")), &of_model(&draft.model), "LibreOffice");
}

#[test]
fn very_long_words_stay_on_the_page_and_whole() {
    for letters in ["щ".repeat(300), "Ж".repeat(300), "a_b/".repeat(75), "w".repeat(300)] {
        let made = make(&filled(&letters), Language::Ru);
        let text = squeezed(&made.text());
        assert!(text.matches(&letters[..letters.len() / 10 * 2]).count() > 20, "{letters} is torn apart");
        let layout = crate::document_support::run("pdftotext", &["-bbox", made.pdf.to_str().unwrap(), "-"]);
        for word in layout.lines().filter(|line| line.trim_start().starts_with("<word ")) {
            let right: f64 = word.split_once("xMax=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
            let left: f64 = word.split_once("xMin=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
            assert!(right < 568.0 && left > 84.0, "{word} is in a margin");
        }
        let wanted = of_model(&made.model);
        alike(&of_html(&fs::read_to_string(made.render(Format::Html)).unwrap()), &wanted, "the HTML");
        alike(&of_docx(&made.render(Format::Docx)), &wanted, "the DOCX");
    }
}

#[test]
fn what_no_font_has_is_marked_visibly() {
    let made = make(&filled("Праздник 😀 漢\u{202e}\u{7}\u{e000}!"), Language::Ru);
    let text = squeezed(&made.text());
    assert!(text.matches("Праздник⟨U+1F600⟩⟨U+6F22⟩⟨U+202E⟩⟨U+0007⟩⟨U+E000⟩!").count() > 20, "{text}");
    same_in_every_format(&made, "the marks");
}

#[test]
fn other_scripts_that_the_fonts_have_are_printed_as_they_are() {
    let written = "Ёё Ъъ Ћ Ғ Ү І Ї № « » — ₽ ≤ café Größe Ω שלום";
    let made = make(&filled(written), Language::Ru);
    let text: String = squeezed(&made.text()).chars().filter(|c| !matches!(c, '\u{202a}'..='\u{202e}' | '\u{200e}' | '\u{200f}')).collect();
    for word in written.split(' ') {
        assert!(text.matches(word).count() > 20, "{word} is missing in\n{text}");
    }
}
