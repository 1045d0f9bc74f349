//! Notes that arrive as RTF or HTML, made plain: texts of the model are paragraphs of Unicode, and nothing in them is markup.

use std::panic::catch_unwind;

/// A text without markup; `None` if it is RTF that cannot be read.
#[must_use]
pub fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let plain = if text.starts_with("{\\rtf") {
        // The library panics on some texts that are cut off.
        catch_unwind(|| rtf_parser::RtfDocument::try_from(text).map(|document| document.get_text())).ok()?.ok()?
    } else if is_html(text) {
        nanohtml2text::html2text(text)
    } else {
        text.to_owned()
    };
    Some(plain.replace("\r\n", "\n").replace('\r', "\n").trim().to_owned())
}

/// The paragraphs of a text without markup, without empty ones.
#[must_use]
pub fn paragraphs(text: &str) -> Vec<String> {
    text.lines().map(one_line).filter(|line| !line.is_empty()).collect()
}

/// A text on one line, with single spaces.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text holds tags. A sentence with "a < b" has none.
fn is_html(text: &str) -> bool {
    const TAGS: [&str; 16] = ["p", "br", "div", "span", "b", "i", "u", "em", "strong", "ul", "ol", "li", "table", "html", "body", "font"];
    let lower = text.to_ascii_lowercase();
    lower.match_indices('<').any(|(at, _)| {
        let rest = lower[at + 1..].trim_start_matches('/');
        let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        let after = rest[name.len()..].chars().next();
        TAGS.contains(&name.as_str()) && matches!(after, Some('>' | '/' | ' ' | '\n' | '\r' | '\t'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_taken_away_and_text_stays() {
        let rtf = "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Times New Roman;}}\\f0\\fs24 Moved by the chair.\\par}";
        assert_eq!(plain(rtf).unwrap(), "Moved by the chair.");
        let empty = "{\\rtf1\\ansi\\ansicpg1252\\deff0\\deflang1033{\\fonttbl{\\f0\\fnil\\fcharset0 Times New Roman;}}\r\n{\\colortbl ;\\red0\\green0\\blue0;}\r\n\\viewkind4\\uc1\\pard\\cf1\\f0\\fs24\\par\r\n}\r\n";
        assert_eq!(plain(empty).unwrap(), "");
        assert_eq!(paragraphs(&plain("<p>Eins &amp; zwei</p><p>Drei</p>").unwrap()), ["Eins & zwei", "Drei"]);
        assert_eq!(plain("a < b, and {x} > y").unwrap(), "a < b, and {x} > y");
        assert_eq!(paragraphs("one\r\n\r\n  two   words "), ["one", "two words"]);
    }

    #[test]
    fn rtf_that_cannot_be_read_is_refused() {
        for text in ["{\\rtf1", "{\\rtf1 \\'", "{\\rtf1{{{{"] {
            assert!(plain(text).is_none_or(|text| !text.contains('\\')), "{text}");
        }
    }
}
