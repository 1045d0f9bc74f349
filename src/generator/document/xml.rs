//! What XML and HTML cannot hold: the controls and the few code points that no parser accepts, however they are escaped.

use super::glyphs::mark;

/// Puts the visible mark in place of every character that XML 1.0 forbids (production 2, Char). CHECK has done the same to what it knew to be printed; this is
/// the last place at which one could get into a file that nobody can open.
pub(super) fn only_legal(markup: String) -> String {
    if markup.chars().all(is_legal) {
        return markup;
    }
    let mut out = String::with_capacity(markup.len());
    for character in markup.chars() {
        match character {
            legal if is_legal(legal) => out.push(legal),
            forbidden => out.push_str(&mark(forbidden)),
        }
    }
    out
}

const fn is_legal(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_parser_takes_becomes_visible() {
        assert_eq!(only_legal("<p>а\u{0}\u{b}\u{ffff}б\t\u{10ffff}</p>".to_owned()), "<p>а⟨U+0000⟩⟨U+000B⟩⟨U+FFFF⟩б\t\u{10ffff}</p>");
        assert_eq!(only_legal("<p>\u{7f}\u{85}\r\n</p>".to_owned()), "<p>\u{7f}\u{85}\r\n</p>");
    }
}
