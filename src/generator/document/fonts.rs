//! The fonts that every document is set in. They are compiled in: no font of the machine is ever looked at, so the same text breaks in the same places everywhere.

use std::sync::LazyLock;
use typst::{
    foundations::Bytes,
    text::{Font, FontBook, FontStretch, FontStyle, FontVariant, FontWeight},
    utils::LazyHash,
};

/// The families in the order in which a character is looked for; the template names the same.
pub const FAMILIES: [&str; 2] = ["Libertinus Serif", "DejaVu Sans Mono"];

/// The styles that the template sets foreign text in.
const STYLES: [(FontStyle, FontWeight); 3] =
    [(FontStyle::Normal, FontWeight::REGULAR), (FontStyle::Normal, FontWeight::BOLD), (FontStyle::Italic, FontWeight::REGULAR)];

/// All fonts, and the book that they are found in.
pub(in crate::generator) struct Fonts {
    pub(in crate::generator) book: LazyHash<FontBook>,
    pub(in crate::generator) faces: Vec<Font>,
}

pub(in crate::generator) static FONTS: LazyLock<Fonts> = LazyLock::new(|| {
    let faces: Vec<Font> = typst_assets::fonts()
        .flat_map(|data| Font::iter(Bytes::new(data)))
        .filter(|font| FAMILIES.contains(&font.info().family.as_str()))
        .collect();
    Fonts { book: LazyHash::new(FontBook::from_fonts(&faces)), faces }
});

/// Whether the fonts can draw the character in every style that the template uses.
#[must_use]
pub fn covers(character: char) -> bool {
    STYLES.iter().all(|&(style, weight)| {
        FAMILIES.iter().any(|family| {
            let variant = FontVariant { style, weight, stretch: FontStretch::NORMAL };
            let face = FONTS.book.select(&family.to_lowercase(), variant).and_then(|index| FONTS.book.info(index));
            face.is_some_and(|info| info.coverage.contains(u32::from(character)))
        })
    })
}
