//! When a failed attempt is tried again: 2 s · 2ⁿ, n = attempts failed so far − 1, plus jitter (ADR-0014 says why n starts at 0).

use super::failure::Retryable;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    pub base: Duration,
    /// The share of the delay that is added at most, 0.1 = 10 %.
    pub jitter: f64,
}

impl RetryPolicy {
    /// The longest delay, however many attempts are configured.
    const MAX_DELAY: Duration = Duration::from_hours(24);

    /// How long to wait after the `failed`-th failed attempt (counted from 1); `random` is uniform in 0..1.
    #[must_use]
    pub fn delay(&self, failed: u32, random: f64) -> Duration {
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(failed.saturating_sub(1))).min(Self::MAX_DELAY);
        doubled + doubled.mul_f64((self.jitter * random).clamp(0.0, 1.0))
    }

    /// Whether an attempt that failed as the `failed`-th of at most `max_attempts` is followed by another.
    #[must_use]
    pub fn tries_again(retryable: Retryable, failed: u32, max_attempts: u32) -> bool {
        match retryable {
            Retryable::No => false,
            Retryable::Once => failed < 2.min(max_attempts),
            Retryable::Yes => failed < max_attempts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_the_base() {
        let policy = RetryPolicy { base: Duration::from_secs(2), jitter: 0.1 };
        assert_eq!([1, 2, 3, 4].map(|failed| policy.delay(failed, 0.0).as_secs()), [2, 4, 8, 16]);
        assert_eq!(policy.delay(1, 1.0), Duration::from_millis(2200));
        assert!(policy.delay(u32::MAX, 1.0) <= RetryPolicy::MAX_DELAY.mul_f64(1.1));
    }

    #[test]
    fn attempts_are_bounded() {
        assert!(RetryPolicy::tries_again(Retryable::Yes, 4, 5));
        assert!(!RetryPolicy::tries_again(Retryable::Yes, 5, 5));
        assert!(RetryPolicy::tries_again(Retryable::Once, 1, 5));
        assert!(!RetryPolicy::tries_again(Retryable::Once, 2, 5));
        assert!(!RetryPolicy::tries_again(Retryable::Once, 1, 1));
        assert!(!RetryPolicy::tries_again(Retryable::No, 1, 5));
    }
}
