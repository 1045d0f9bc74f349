//! The PDF of a protocol: complete, in order, to the standard's measures, archivable as far as the tools here can see, and always the same bytes.

use crate::document_support::{Made, make, run, sample, sha256, squeezed};
use base64::Engine as _;
use protocol_bridge::{
    domain::agenda::{Agenda, Language},
    generator::document::model::Block,
};
use std::{fs, path::Path};

const MM: f64 = 72.0 / 25.4;

#[test]
fn every_title_and_decision_is_there_in_order() {
    for agenda_id in ["council-2026-11", "large-council", "slow-council", "contradictory-council", "allotments-2026"] {
        let agenda = sample(agenda_id);
        let text = squeezed(&make(&agenda, agenda.language.unwrap()).text());
        let mut questions: Vec<_> = agenda.questions.iter().collect();
        questions.sort_by_key(|question| question.order);
        let mut from = 0;
        for (at, question) in questions.iter().enumerate() {
            let title = squeezed(&question.title);
            let heading = format!("{}.{title}", at + 1);
            assert_eq!(text.matches(&heading).count(), 2, "{agenda_id}: {heading} stands in the contents and above its question");
            from += text[from..].rfind(&heading).unwrap_or_else(|| panic!("{agenda_id}: {heading} is out of order"));
            for point in &question.decision {
                let point = squeezed(&point.text);
                from += text[from..].find(&point).unwrap_or_else(|| panic!("{agenda_id}: {point} is missing below {heading}"));
            }
            let vote = question.vote.as_ref().map(|vote| vote.in_favour.to_string());
            assert!(vote.is_none_or(|count| text[from..].contains(&count)));
        }
    }
}

#[test]
fn a_council_meeting_has_everything_that_happened() {
    let made = make(&sample("council-2026-11"), Language::Ru);
    let text = squeezed(&made.text());
    for want in [
        "СоветдепутатовСветлоярскогогородскогоокругаПРОТОКОЛзаседанияСоветадепутатов",
        "30ноября2026г.№16г.Светлоярск",
        "началов10:00,окончаниев12:40",
        "Председательствующий:СоколоваМ.Н.,председательСоветадепутатов",
        "Секретарь:НикитинаА.В.",
        "Присутствовали12человекиз13:",
        "ЕршоваЛ.И.—депутатпоизбирательномуокругу№7(дистанционно)",
        "ОрловаТ.П.—депутатпоизбирательномуокругу№13(с10:25)",
        "Отсутствовали:МартыновГ.Р.(служебнаякомандировка)",
        "из13членовсправомголосакоткрытиюзаседанияприсутствуют11;дляправомочноститребуетсяболееполовины,тоестьнеменее7.Кворумимеется.",
        "ПОВЕСТКАДНЯ",
        "Докладчик:РомановК.Л.,начальникфинансовогоуправления",
        "СЛУШАЛИ:",
        "ВЫСТУПИЛИ:",
        "РЕШИЛИ:",
        "Срок—до18декабря2026г.",
        "Голосовали:за—10,против—0,воздержались—1.",
        "Поимённоеголосование:",
        "В10:25кучастиювзаседанииприступаетОрловаТ.П.Присутствуют12членовиз13.",
        "неучаствуетКравцовП.С.(супругавходитвправлениеорганизации-арендатора).",
        "Особоемнение:ВолковД.А.—считаю",
        "Тайноеголосование:выданобюллетеней—12,обнаруженовурне—12",
        "В12:05заседаниепокидаетЖуковА.Т.Присутствуют11членовиз13.",
        "рассмотрениевопросаперенесенона21декабря2026г.",
        "Заседаниеобъявленозакрытымв12:40.",
        "Приложения:№1–5—файлы",
        "М.Н.Соколова",
        "А.В.Никитина",
        "Переченьприложенныхфайлов",
    ] {
        assert!(text.contains(want), "{want} is missing in\n{text}");
    }
}

#[test]
fn the_page_is_laid_out_to_the_standard() {
    let made = make(&sample("large-council"), Language::Ru);
    assert_eq!(laid_out_to_the_standard(&made.pdf), made.pages as usize);
}

/// Looks at every word of every page; how many pages there are.
pub fn laid_out_to_the_standard(pdf: &Path) -> usize {
    let layout = run("pdftotext", &["-bbox", pdf.to_str().unwrap(), "-"]);
    let pages: Vec<&str> = layout.split("<page ").skip(1).collect();
    assert!(pages.len() > 1, "one page shows nothing of the others");
    let (mut leftmost, mut rightmost) = (f64::MAX, f64::MIN);
    for (at, page) in pages.iter().enumerate() {
        let mut words: Vec<Word> = page.lines().filter_map(Word::read).collect();
        if at == 0 {
            assert!(words.iter().all(|word| word.top > 19.0 * MM), "the first page has no number");
        } else {
            let number = words.iter().position(|word| word.bottom <= 20.0 * MM).unwrap_or_else(|| panic!("page {} has no number", at + 1));
            let number = words.remove(number);
            assert_eq!(number.text, (at + 1).to_string(), "the page's number stands above the text");
            let middle = f64::midpoint(30.0 * MM, 200.0 * MM);
            assert!((f64::midpoint(number.left, number.right) - middle).abs() < MM, "page {}: the number is in the middle", at + 1);
            assert!(number.top >= 10.0 * MM, "page {}: the number is 10 mm from the edge: {number:?}", at + 1);
        }
        for word in words {
            leftmost = leftmost.min(word.left);
            rightmost = rightmost.max(word.right);
            assert!(word.left >= 29.0 * MM && word.right <= 201.0 * MM, "page {}: {word:?} is in a margin", at + 1);
            assert!(word.top >= 19.0 * MM && word.bottom <= 278.0 * MM, "page {}: {word:?} is in a margin", at + 1);
        }
    }
    assert!((leftmost - 30.0 * MM).abs() < MM && (rightmost - 200.0 * MM).abs() < MM, "the text fills the width: {leftmost}–{rightmost}");
    pages.len()
}

#[derive(Debug)]
struct Word {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    text: String,
}

impl Word {
    /// `<word xMin="…" yMin="…" xMax="…" yMax="…">text</word>`
    fn read(line: &str) -> Option<Self> {
        let (attributes, text) = line.trim().strip_prefix("<word ")?.strip_suffix("</word>")?.split_once('>')?;
        let value = |name: &str| attributes.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.parse().ok();
        Some(Self { left: value("xMin")?, top: value("yMin")?, right: value("xMax")?, bottom: value("yMax")?, text: text.to_owned() })
    }
}

#[test]
fn tools_find_nothing_wrong_with_the_file() {
    for (agenda_id, language) in [("council-2026-11", Language::Ru), ("allotments-2026", Language::En), ("council-2026-11", Language::De)] {
        let made = make(&sample(agenda_id), language);
        let pdf = made.pdf.to_str().unwrap();
        let checked = run("qpdf", &["--check", pdf]);
        assert!(checked.contains("No syntax or stream encoding errors found"), "{checked}");

        let fonts = run("pdffonts", &[pdf]);
        let lines: Vec<&str> = fonts.lines().skip(2).collect();
        assert!(!lines.is_empty());
        for line in lines {
            assert!(line.contains("LibertinusSerif") || line.contains("DejaVuSansMono"), "only our fonts: {line}");
            assert!(line.contains(" yes yes yes "), "embedded, a subset, mapped to Unicode: {line}");
        }

        let info = run("pdfinfo", &[pdf]);
        for want in ["Tagged:          yes", "Creator:         protocol-bridge", "JavaScript:      no", "Encrypted:       no", "A4"] {
            assert!(info.contains(want), "{want} is missing in\n{info}");
        }
        assert!(squeezed(&info).contains(&squeezed(&format!("Title: {}", made.model.title))), "{info}");
        let metadata = run("pdfinfo", &["-meta", pdf]);
        for want in ["<pdfaid:part>3</pdfaid:part>", "<pdfaid:conformance>A</pdfaid:conformance>", "<pdfuaid:part>1</pdfuaid:part>"] {
            assert!(metadata.contains(want), "{want} is missing in\n{metadata}");
        }
    }
}

#[test]
fn attached_files_come_back_byte_for_byte() {
    let agenda = sample("council-2026-11");
    let made = make(&agenda, Language::Ru);
    let out = made.folder.path().join("detached");
    fs::create_dir(&out).unwrap();
    run("pdfdetach", &["-saveall", "-enc", "UTF-8", "-o", out.to_str().unwrap(), made.pdf.to_str().unwrap()]);
    let mut digests: Vec<String> = fs::read_dir(&out).unwrap().map(|file| sha256(&fs::read(file.unwrap().path()).unwrap())).collect();
    digests.sort();
    let mut wanted: Vec<String> = made.model.attachments.iter().map(|attachment| attachment.sha256.clone()).collect();
    wanted.sort();
    assert_eq!(digests, wanted);

    let files = agenda.questions.iter().flat_map(|question| question.report.iter().chain(&question.attachments));
    for file in files {
        let bytes = base64::engine::general_purpose::STANDARD.decode(file.base64.as_ref().unwrap()).unwrap();
        assert_eq!(file.sha256.as_deref(), Some(sha256(&bytes).as_str()), "the sample announces the right digest");
        assert_eq!(file.bytes, Some(bytes.len() as u64));
        assert!(digests.contains(&sha256(&bytes)));
        assert!(squeezed(&made.text()).contains(&sha256(&bytes)), "the list of files names the digest");
    }
}

#[test]
fn the_same_agenda_makes_the_same_bytes() {
    let agenda = sample("council-2026-11");
    let bytes = |made: &Made| sha256(&fs::read(&made.pdf).unwrap());
    let first = make(&agenda, Language::Ru);
    make(&sample("allotments-2026"), Language::En);
    assert_eq!(bytes(&first), bytes(&make(&agenda, Language::Ru)));
    let mut other = agenda.clone();
    other.questions[0].title.push('!');
    assert_ne!(bytes(&first), bytes(&make(&other, Language::Ru)));
    let text = String::from_utf8_lossy(&fs::read(&first.pdf).unwrap()).into_owned();
    assert!(text.contains("D:20261130070000"), "the file carries the meeting's time");
}

#[test]
fn each_language_has_its_words() {
    let agenda = sample("council-2026-11");
    for (language, words) in [
        (Language::Ru, ["ПРОТОКОЛ", "ПОВЕСТКАДНЯ", "30ноября2026г.", "Голосовали:за—10"]),
        (Language::En, ["MINUTES", "AGENDA", "30November2026", "Votes:for–10"]),
        (Language::De, ["NIEDERSCHRIFT", "TAGESORDNUNG", "30.November2026", "Abstimmung:Ja–10"]),
    ] {
        let made = make(&agenda, language);
        let text = squeezed(&made.text());
        for word in words {
            assert!(text.contains(word), "{language:?}: {word}");
        }
    }
}

#[test]
fn the_list_of_those_present_moves_to_an_annex_from_fifteen_names() {
    let mut agenda: Agenda = sample("large-council");
    agenda.questions.truncate(2);
    for (names, in_annex) in [(14, false), (15, true)] {
        let mut agenda = agenda.clone();
        agenda.members.retain(|member| member.presence.is_empty());
        agenda.members.iter_mut().for_each(|member| member.attendance = protocol_bridge::domain::agenda::Attendance::Present);
        agenda.members.truncate(names);
        let made = make(&agenda, Language::Ru);
        assert_eq!(made.model.annexes.iter().any(|annex| annex.title == "Список присутствовавших"), in_annex);
        assert_eq!(made.model.opening.iter().any(|block| matches!(block, Block::List { items } if items.len() == names)), !in_annex);
    }
}

#[test]
fn signatures_are_never_alone_on_a_page() {
    // Grows by a line at a time, so that the end falls on every place of a page.
    let mut agenda = sample("slow-council");
    agenda.questions.truncate(1);
    for lines in 0..45 {
        agenda.questions[0].heard = vec!["Строка.".to_owned(); lines + 1];
        let made = make(&agenda, Language::Ru);
        let text = made.text();
        let page = text.split('\u{c}').find(|page| page.contains("М. Н. Соколова") || page.contains("М.\u{a0}Н.\u{a0}Соколова")).unwrap();
        assert!(squeezed(page).contains("Повесткадняисчерпана"), "after {lines} lines the signatures stand alone:\n{page}");
        assert!(squeezed(page).contains("А.В.Никитина"), "after {lines} lines the signatures are torn:\n{page}");
    }
}
