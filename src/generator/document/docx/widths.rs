//! How a table's columns share the width of the text, in twentieths of a point: Word does not measure letters before it has laid a table out.

use crate::generator::document::model::{Table, Width};

/// Between the margins of 30 and 10 mm.
pub(super) const TEXT_WIDTH: usize = 9638;

/// About how wide a letter of the table's size is, the same in a head, and what a cell keeps free beside its text.
const LETTER: usize = 150;
const BOLD_LETTER: usize = 170;
const PADDING: usize = 220;

/// One width a column; together they are [`TEXT_WIDTH`].
pub(super) fn column_widths(table: &Table) -> Vec<usize> {
    let mut widths: Vec<usize> = table.columns.iter().enumerate().map(|(at, column)| wanted(table, at, column.width)).collect();
    let wide = table.columns.iter().filter(|column| column.width == Width::Wide).count();
    let taken: usize = widths.iter().sum();
    if wide > 0 && taken < TEXT_WIDTH {
        let share = (TEXT_WIDTH - taken) / wide;
        for (width, _) in widths.iter_mut().zip(&table.columns).filter(|(_, column)| column.width == Width::Wide) {
            *width += share;
        }
    }
    let rest = TEXT_WIDTH.saturating_sub(widths.iter().sum());
    if let Some(last) = widths.last_mut() {
        *last += rest;
    }
    widths
}

fn wanted(table: &Table, at: usize, width: Width) -> usize {
    let letters = |text: &String| text.chars().count();
    let longest = table.rows.iter().filter_map(|row| row.get(at)).map(letters).max().unwrap_or(0) * LETTER;
    let longest = longest.max(letters(&table.columns[at].title) * BOLD_LETTER) + PADDING;
    match width {
        Width::Narrow => longest.clamp(454, 1247),
        Width::Medium => longest.clamp(1134, 2268),
        Width::Digest => 3005,
        Width::Wide => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::document::model::Column;

    #[test]
    fn the_columns_fill_the_width() {
        for kinds in [
            vec![Width::Medium, Width::Narrow, Width::Wide],
            vec![Width::Narrow],
            vec![Width::Wide, Width::Wide, Width::Wide],
            vec![Width::Narrow, Width::Narrow, Width::Wide, Width::Medium, Width::Digest],
        ] {
            let columns = kinds.iter().map(|width| Column { title: "Размер".to_owned(), width: *width }).collect();
            let table = Table { caption: None, columns, rows: vec![vec!["щ".repeat(300); kinds.len()]] };
            let widths = column_widths(&table);
            assert_eq!(widths.iter().sum::<usize>(), TEXT_WIDTH, "{kinds:?}: {widths:?}");
            assert!(widths.iter().all(|width| *width >= 454), "{kinds:?}: {widths:?}");
        }
    }
}
