//! The only source of ids and randomness. Tests and simulations hand in a seed and get the same run again.

use crate::domain::time::Timestamp;
use rand::{RngExt, SeedableRng as _, rngs::StdRng};
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// Ids and random numbers; cheap to clone.
#[derive(Debug, Clone)]
pub struct Entropy(Arc<Mutex<StdRng>>);

impl Entropy {
    /// Seeded by the operating system.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the operating system for randomness")]
    pub fn system() -> Self {
        Self(Arc::new(Mutex::new(rand::make_rng())))
    }

    /// The same seed gives the same ids in the same order.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A fresh UUIDv7, made at `now`.
    #[must_use]
    pub fn id<Id: From<Uuid>>(&self, now: Timestamp) -> Id {
        let random: [u8; 10] = self.with(RngExt::random);
        let millis = u64::try_from(now.as_micros() / 1000).unwrap_or(0);
        Id::from(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// 256 bits that nobody can guess; from [`Entropy::system`] only.
    #[must_use]
    pub fn secret(&self) -> [u8; 32] {
        self.with(RngExt::random)
    }

    /// Uniform in 0..1, for jitter.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.with(RngExt::random)
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::TaskId;

    #[test]
    fn ids_are_version_7_and_follow_the_seed() {
        let now = Timestamp::from_micros(1_796_040_000_000_000);
        let (one, two) = (Entropy::seeded(1), Entropy::seeded(1));
        let id: TaskId = one.id(now);
        assert_eq!(id, two.id(now));
        assert_ne!(id, one.id(now));
        assert_eq!(id.0.get_version_num(), 7);
    }
}
