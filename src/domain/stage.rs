//! The migration's stages (the seed's three phases; "phase" is the generator's word here).

use serde::{Deserialize, Serialize};

/// How far the move off the v1 call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The bridge works for everyone; the caller does not change.
    M1,
    /// As M1, for callers with a proved name only.
    M2,
    /// v1 answers 410 to all; then it is deleted.
    M3,
}
