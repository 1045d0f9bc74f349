//! `Content-Disposition` (RFC 6266, RFC 8187) from a title that may be Cyrillic, long or hostile: the header is pure ASCII with a readable `filename=` and the
//! real name in `filename*=`; the decoded name is safe on every system and at most 255 bytes.

use axum::http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The most that file systems take for a name.
const MAX_NAME_BYTES: usize = 255;
/// What RFC 8187 leaves as it is.
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// The header for a document called `title`, to be shown where the browser can.
#[must_use]
pub fn inline(title: &str, extension: &str) -> HeaderValue {
    let stem = safe_stem(title, MAX_NAME_BYTES - extension.len() - 1);
    let ascii = ascii_stem(&stem);
    let encoded = utf8_percent_encode(&stem, ATTR_CHAR);
    HeaderValue::try_from(format!("inline; filename=\"{ascii}.{extension}\"; filename*=UTF-8''{encoded}.{extension}"))
        .expect("both names are ASCII without quotes, backslashes or controls")
}

/// A name without what file systems, shells and readers stumble over.
fn safe_stem(title: &str, most: usize) -> String {
    let mut stem = String::with_capacity(title.len());
    for c in title.chars() {
        let c = match c {
            // Reordering marks make `fdp.exe` look like `exe.pdf`.
            '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}' => continue,
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | ';' | '%' => '-',
            c if c.is_control() || c.is_whitespace() => ' ',
            c => c,
        };
        if !(c == ' ' && stem.ends_with(' ')) {
            stem.push(c);
        }
    }
    let mut stem = stem.trim_matches([' ', '.']).to_owned();
    stem.truncate(stem.floor_char_boundary(most));
    let stem = stem.trim_end_matches([' ', '.']);
    if stem.is_empty() || is_reserved(stem) { format!("protocol {stem}").trim_end().to_owned() } else { stem.to_owned() }
}

/// Names that Windows keeps for devices.
fn is_reserved(stem: &str) -> bool {
    let upper = stem.to_ascii_uppercase();
    let base = upper.split('.').next().unwrap_or_default();
    matches!(base, "CON" | "PRN" | "AUX" | "NUL")
        || (base.len() == 4 && (base.starts_with("COM") || base.starts_with("LPT")) && base.ends_with(|c: char| c.is_ascii_digit()))
}

fn ascii_stem(stem: &str) -> String {
    let mut ascii = String::with_capacity(stem.len());
    for c in stem.chars() {
        match (c, transliterated(c)) {
            (' '..='~', _) => ascii.push(c),
            (_, Some(latin)) => ascii.push_str(latin),
            _ => ascii.push('_'),
        }
    }
    ascii.truncate(MAX_NAME_BYTES - 5);
    ascii
}

/// Russian letters as passports write them.
fn transliterated(c: char) -> Option<&'static str> {
    Some(match c {
        'а' => "a",
        'б' => "b",
        'в' => "v",
        'г' => "g",
        'д' => "d",
        'е' | 'ё' | 'э' => "e",
        'ж' => "zh",
        'з' => "z",
        'и' | 'й' => "i",
        'к' => "k",
        'л' => "l",
        'м' => "m",
        'н' => "n",
        'о' => "o",
        'п' => "p",
        'р' => "r",
        'с' => "s",
        'т' => "t",
        'у' => "u",
        'ф' => "f",
        'х' => "kh",
        'ц' => "ts",
        'ч' => "ch",
        'ш' => "sh",
        'щ' => "shch",
        'ъ' => "ie",
        'ы' => "y",
        'ь' | 'Ь' => "",
        'ю' => "iu",
        'я' => "ia",
        'А' => "A",
        'Б' => "B",
        'В' => "V",
        'Г' => "G",
        'Д' => "D",
        'Е' | 'Ё' | 'Э' => "E",
        'Ж' => "Zh",
        'З' => "Z",
        'И' | 'Й' => "I",
        'К' => "K",
        'Л' => "L",
        'М' => "M",
        'Н' => "N",
        'О' => "O",
        'П' => "P",
        'Р' => "R",
        'С' => "S",
        'Т' => "T",
        'У' => "U",
        'Ф' => "F",
        'Х' => "Kh",
        'Ц' => "Ts",
        'Ч' => "Ch",
        'Ш' => "Sh",
        'Щ' => "Shch",
        'Ъ' => "Ie",
        'Ы' => "Y",
        'Ю' => "Iu",
        'Я' => "Ia",
        '«' | '»' | '“' | '”' | '„' => "'",
        '—' | '–' => "-",
        '№' => "No",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;

    fn names(title: &str) -> (String, String) {
        let header = inline(title, "pdf");
        let text = header.to_str().expect("pure ASCII");
        let (ascii, star) = text.strip_prefix("inline; filename=\"").unwrap().split_once("\"; filename*=UTF-8''").unwrap();
        (ascii.to_owned(), percent_decode_str(star).decode_utf8().unwrap().into_owned())
    }

    #[test]
    fn a_russian_title_stays_readable_in_both_names() {
        let (ascii, real) = names("Протокол № 17 заседания Совета");
        assert_eq!(ascii, "Protokol No 17 zasedaniia Soveta.pdf");
        assert_eq!(real, "Протокол № 17 заседания Совета.pdf");
    }

    #[test]
    fn hostile_titles_do_no_harm() {
        for title in [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "a\"b\\c/d;e",
            "%41",
            "a\r\nX-Evil: 1",
            "a\0b",
            "😀",
            "gpj\u{202E}fdp.exe",
            "name.",
            "CON",
            "com1.x",
            "  ",
            &"Я".repeat(300),
            &"щ".repeat(120),
            &"x".repeat(1000),
            &"😀".repeat(100),
        ] {
            let (ascii, real) = names(title);
            for name in [&ascii, &real] {
                assert!(name.len() <= 255, "{title:?}: {} bytes", name.len());
                assert!(name.strip_suffix(".pdf").is_some_and(|stem| !stem.is_empty()), "{title:?} became {name:?}");
                assert!(!name.contains(['/', '\\', '"', '\r', '\n', '\0', '\u{202E}', '%', ';']), "{title:?} became {name:?}");
                assert!(!name.starts_with('.') && !is_reserved(name), "{title:?} became {name:?}");
            }
        }
    }
}
