//! Small repairs that a careful typist makes: where a line may not break, and how a name is signed.
//!
//! Only white space is changed, and only from a space to a non-breaking one: what was written stays, letter for letter.

const NO_BREAK: char = '\u{a0}';

/// Units and words that are not torn from the number before them.
const AFTER_NUMBER: &[&str] = &[
    "%",
    "₽",
    "€",
    "руб.",
    "руб",
    "рублей",
    "рубля",
    "рубль",
    "коп.",
    "тыс.",
    "млн",
    "млрд",
    "кг",
    "т",
    "г",
    "м",
    "км",
    "см",
    "мм",
    "га",
    "м²",
    "м³",
    "кв.",
    "куб.",
    "л",
    "л.",
    "шт.",
    "чел.",
    "экз.",
    "г.",
    "гг.",
    "ч",
    "ч.",
    "мин",
    "мин.",
    "января",
    "февраля",
    "марта",
    "апреля",
    "мая",
    "июня",
    "июля",
    "августа",
    "сентября",
    "октября",
    "ноября",
    "декабря",
    "Uhr",
    "Euro",
    "Mio.",
    "Mrd.",
    "kg",
    "km",
    "m",
    "ha",
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
    "January",
    "February",
    "March",
    "May",
    "June",
    "July",
    "October",
    "December",
];

/// Signs and abbreviations that are not torn from what follows them.
const BEFORE_ANYTHING: &[&str] = &[
    "№",
    "§",
    "№№",
    "§§",
    "Nr.",
    "No.",
    "Art.",
    "ст.",
    "п.",
    "пп.",
    "ч.",
    "ул.",
    "пр.",
    "д.",
    "корп.",
    "кв.",
    "стр.",
    "с.",
    "пос.",
    "дер.",
];

/// A text of one line: line breaks become spaces, places that must not be torn are tied.
#[must_use]
pub fn line(text: &str) -> String {
    let joined: Vec<&str> = text
        .split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}', '\u{85}'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    tie(&joined.join(" "))
}

/// A text of several paragraphs, one a line.
pub fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    text.split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}', '\u{85}']).map(str::trim).filter(|part| !part.is_empty()).map(tie)
}

/// Ties initials to surnames, numbers to units, signs to numbers, and a dash to the word before it.
fn tie(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut out = String::with_capacity(text.len() + 16);
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(if is_tied(words[at - 1], word) { NO_BREAK } else { ' ' });
        }
        out.push_str(word);
    }
    out
}

fn is_tied(left: &str, right: &str) -> bool {
    let bare_left = left.trim_start_matches(['(', '«', '„', '"', '[']);
    let bare_right = right.trim_end_matches([',', ';', ':', ')', '»', '"', '.', '!', '?']);
    if left.is_empty() || right.is_empty() {
        return false;
    }
    matches!(right, "—" | "–")
        || is_initials(bare_left)
        || (is_initials(right.trim_end_matches([',', ';', ':', ')', '»'])) && bare_left.chars().next().is_some_and(char::is_uppercase))
        || BEFORE_ANYTHING.contains(&bare_left) && right.chars().next().is_some_and(char::is_alphanumeric)
        || (bare_left == "г." && right.chars().next().is_some_and(char::is_uppercase))
        || (left.ends_with(|c: char| c.is_ascii_digit()) && (AFTER_NUMBER.contains(&right) || AFTER_NUMBER.contains(&bare_right)))
        || (matches!(left, "тыс." | "млн" | "млрд") && bare_right.starts_with("руб"))
        // 30 ноября 2026 г.: the year to the month, too
        || (right.starts_with("20") && AFTER_NUMBER.contains(&left) && left.chars().count() > 2 && left.ends_with(char::is_alphabetic))
        // 1 250 000: groups of three digits
        || (left.ends_with(|c: char| c.is_ascii_digit()) && bare_right.len() == 3 && bare_right.bytes().all(|b| b.is_ascii_digit()) && left.len() <= 3)
}

/// «И.» or «И.О.»: upper-case letters, each with a full stop, and nothing else.
fn is_initials(word: &str) -> bool {
    let mut letters = 0;
    let mut rest = word.chars();
    while let Some(letter) = rest.next() {
        if !letter.is_uppercase() || rest.next() != Some('.') {
            return false;
        }
        letters += 1;
    }
    (1..=3).contains(&letters)
}

/// A name as it stands below a signature: «Соколова М. Н.» → «М. Н. Соколова». Whatever is not clearly surname and initials stays as it is.
#[must_use]
pub fn initials_first(name: &str) -> String {
    let name = line(name);
    let words: Vec<&str> = name.split([' ', NO_BREAK]).collect();
    match words.split_first() {
        Some((surname, initials)) if !initials.is_empty() && !is_initials(surname) && initials.iter().all(|word| is_initials(word)) => {
            let mut parts = initials.to_vec();
            parts.push(surname);
            parts.join("\u{a0}")
        }
        _ => name,
    }
}

/// Adds a full stop where a sentence has no end yet.
#[must_use]
pub fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…', ':', ';']) { text.to_owned() } else { format!("{text}.") }
}

/// The first letter made upper-case.
#[must_use]
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_is_not_torn() {
        for (text, want) in [
            ("Соколова М. Н. доложила", "Соколова~М.~Н.~доложила"),
            ("по предложению И. О. Орловой", "по предложению И.~О.~Орловой"),
            ("до 30 ноября 2026 г. включительно", "до 30~ноября~2026~г. включительно"),
            ("дорога — 5 км, мост", "дорога~— 5~км, мост"),
            ("согласно п. 4 ст. 12", "согласно п.~4 ст.~12"),
            ("1 250 000 рублей", "1~250~000~рублей"),
            ("протокол № 16", "протокол №~16"),
            ("в г. Приозёрске", "в г.~Приозёрске"),
            ("- п  и пробелы", "- п  и пробелы"),
        ] {
            assert_eq!(tie(text).replace(NO_BREAK, "~"), want);
        }
    }

    #[test]
    fn only_white_space_changes() {
        let hostile = "#import \"x\" -- --- ... ' \\u{41} {{x}} &amp; <b> А. Б. № 5 км";
        let strip = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(strip(&line(hostile)), strip(hostile));
    }

    #[test]
    fn a_signature_starts_with_the_initials() {
        assert_eq!(initials_first("Соколова М. Н."), "М.\u{a0}Н.\u{a0}Соколова");
        assert_eq!(initials_first("Соколова М.Н."), "М.Н.\u{a0}Соколова");
        assert_eq!(initials_first("Mary Carter"), "Mary Carter");
        assert_eq!(initials_first("М. Н. Соколова"), "М.\u{a0}Н.\u{a0}Соколова");
    }

    #[test]
    fn paragraphs_are_lines() {
        assert_eq!(paragraphs("a\r\n\nb\u{2028}c").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(line("a\nb"), "a b");
    }
}
