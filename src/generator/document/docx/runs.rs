//! A text as WordprocessingML runs: white space kept, and what is a character in Unicode but an element here written as such.
//!
//! A stretch of right-to-left letters is a run marked so; without the mark Word sets its spaces and digits in the order of the paragraph.

use askama::filters::{Escaper as _, Html, HtmlSafe};
use std::fmt;

/// Writes itself as runs, escaped.
pub(super) struct Runs<'a> {
    text: &'a str,
    /// A character style.
    style: Option<&'static str>,
}

impl<'a> Runs<'a> {
    pub(super) const fn plain(text: &'a str) -> Self {
        Self { text, style: None }
    }

    pub(super) const fn strong(text: &'a str) -> Self {
        Self { text, style: Some("Strong") }
    }

    pub(super) const fn small(text: &'a str) -> Self {
        Self { text, style: Some("Small") }
    }
}

impl HtmlSafe for Runs<'_> {}

impl fmt::Display for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while !rest.is_empty() {
            let (piece, is_right_to_left) = first_piece(rest);
            run(f, piece, self.style, is_right_to_left)?;
            rest = &rest[piece.len()..];
        }
        Ok(())
    }
}

fn run(f: &mut fmt::Formatter<'_>, text: &str, style: Option<&str>, is_right_to_left: bool) -> fmt::Result {
    f.write_str("<w:r>")?;
    if style.is_some() || is_right_to_left {
        f.write_str("<w:rPr>")?;
        if let Some(style) = style {
            write!(f, "<w:rStyle w:val=\"{style}\"/>")?;
        }
        f.write_str(if is_right_to_left { "<w:rtl/></w:rPr>" } else { "</w:rPr>" })?;
    }
    for piece in text.split_inclusive(|c| element(c).is_some()) {
        let last = piece.chars().next_back().and_then(element);
        let letters = if last.is_some() { piece.trim_end_matches(|c| element(c).is_some()) } else { piece };
        if !letters.is_empty() {
            f.write_str("<w:t xml:space=\"preserve\">")?;
            Html.write_escaped_str(&mut *f, letters)?;
            f.write_str("</w:t>")?;
        }
        f.write_str(last.unwrap_or_default())?;
    }
    f.write_str("</w:r>")
}

/// What stands for a character that is no text in this format.
const fn element(character: char) -> Option<&'static str> {
    match character {
        '\t' => Some("<w:tab/>"),
        '\u{ad}' => Some("<w:softHyphen/>"),
        '\u{2011}' => Some("<w:noBreakHyphen/>"),
        _ => None,
    }
}

/// The text up to where the direction turns; what belongs to no direction between two right-to-left letters is right-to-left too.
fn first_piece(text: &str) -> (&str, bool) {
    let Some(first) = text.find(is_right_to_left) else { return (text, false) };
    if first > 0 {
        return (&text[..first], false);
    }
    let mut end = 0;
    for (at, character) in text.char_indices() {
        if is_right_to_left(character) {
            end = at + character.len_utf8();
        } else if character.is_alphabetic() {
            break;
        }
    }
    (&text[..end], true)
}

/// The blocks whose letters are written from right to left (Unicode's DerivedBidiClass, classes R and AL, and the marks on them).
const fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_kept() {
        assert_eq!(
            Runs::plain(" <b> & \"x\"  ").to_string(),
            "<w:r><w:t xml:space=\"preserve\"> &#60;b&#62; &#38; &#34;x&#34;  </w:t></w:r>"
        );
        assert_eq!(Runs::plain("").to_string(), "");
    }

    #[test]
    fn characters_that_are_elements_become_elements() {
        assert_eq!(
            Runs::plain("а\u{ad}б\u{2011}\t").to_string(),
            "<w:r><w:t xml:space=\"preserve\">а</w:t><w:softHyphen/><w:t xml:space=\"preserve\">б</w:t><w:noBreakHyphen/><w:tab/></w:r>"
        );
    }

    #[test]
    fn right_to_left_stretches_are_marked() {
        let written = Runs::strong("от «שלום, 12 עולם», да").to_string();
        let runs: Vec<&str> = written.split("<w:r>").skip(1).collect();
        assert_eq!(runs.len(), 3, "{written}");
        assert_eq!(runs[1], "<w:rPr><w:rStyle w:val=\"Strong\"/><w:rtl/></w:rPr><w:t xml:space=\"preserve\">שלום, 12 עולם</w:t></w:r>");
        assert!(runs[2].contains(">», да<"), "{written}");
    }
}
