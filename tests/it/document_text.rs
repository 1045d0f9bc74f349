//! What people write is printed as they wrote it, whatever it looks like to a typesetter.

use crate::document_support::{make, sample, squeezed};
use protocol_bridge::domain::agenda::{Agenda, Dissent, Language, Outcome, OutcomeCategory, Recusal};

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
    }
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
    }
}

#[test]
fn what_no_font_has_is_marked_visibly() {
    let made = make(&filled("Праздник 😀 漢\u{202e}\u{7}\u{e000}!"), Language::Ru);
    let text = squeezed(&made.text());
    assert!(text.matches("Праздник⟨U+1F600⟩⟨U+6F22⟩⟨U+202E⟩⟨U+0007⟩⟨U+E000⟩!").count() > 20, "{text}");
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
