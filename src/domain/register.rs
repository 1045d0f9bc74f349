//! The register of protocol numbers of one body and year, and its gaps.
//!
//! A number is given once and kept for ever, so a register has gaps: a number whose protocol never came to be, and numbers that nobody was given because an agenda
//! brought a higher one of its own. An auditor asks about each.

use super::ids::AgendaId;

/// One number and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub number: String,
    pub agenda_id: AgendaId,
    /// Whether a protocol bears it.
    pub has_protocol: bool,
}

/// Everything that was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    pub body: String,
    pub year: i16,
    /// In the order in which they were given.
    pub entries: Vec<Entry>,
}

/// Numbers from the first to the last, both of them missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

impl Register {
    /// Numbers that were given out and stand on no protocol.
    pub fn unused(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.has_protocol)
    }

    /// Numbers between the lowest and the highest that nobody has. Those that are not counted ("17-о") leave none.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let mut counted: Vec<u64> = self.entries.iter().filter_map(|entry| counted(&entry.number)).collect();
        counted.sort_unstable();
        counted.dedup();
        let pairs = counted.windows(2).filter(|pair| pair[1] - pair[0] > 1);
        pairs.map(|pair| Gap { from: pair[0] + 1, to: pair[1] - 1 }).collect()
    }
}

fn counted(number: &str) -> Option<u64> {
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lie_between_numbers_that_are_counted() {
        let entry = |number: &str| Entry { number: number.to_owned(), agenda_id: "a".parse().unwrap(), has_protocol: number != "4" };
        let entries = ["2", "3", "0003", "9", "4", "17-о", "11"].map(entry).to_vec();
        let register = Register { body: "Совет".to_owned(), year: 2026, entries };
        assert_eq!(register.gaps(), [Gap { from: 5, to: 8 }, Gap { from: 10, to: 10 }]);
        assert_eq!(register.unused().map(|entry| entry.number.as_str()).collect::<Vec<_>>(), ["4"]);
    }
}
