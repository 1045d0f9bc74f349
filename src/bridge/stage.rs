//! The stage gate: to whom v1 is still open.

use super::answer::Gone;
use crate::domain::{
    caller::{Caller, Proof},
    stage::Stage,
};

/// Whether v1 is closed to `caller`.
#[must_use]
pub fn gate(stage: Stage, caller: &Caller) -> Option<Gone> {
    match (stage, caller.proof) {
        (Stage::M1, _) | (Stage::M2, Proof::Proved) => None,
        (Stage::M2, Proof::Claimed) => Some(Gone::Unproved),
        (Stage::M3, _) => Some(Gone::ForAll),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_opens_v1_to_fewer() {
        let proved = Caller { name: "agenda".to_owned(), proof: Proof::Proved };
        let claimed = Caller::claimed("agenda");
        assert_eq!([Stage::M1, Stage::M2, Stage::M3].map(|stage| gate(stage, &proved)), [None, None, Some(Gone::ForAll)]);
        assert_eq!([Stage::M1, Stage::M2, Stage::M3].map(|stage| gate(stage, &claimed)), [None, Some(Gone::Unproved), Some(Gone::ForAll)]);
    }
}
