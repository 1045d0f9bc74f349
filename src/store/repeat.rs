//! How often, and after what pause, a transaction that lost to another one is run again.

use crate::base::entropy::Entropy;
use std::time::Duration;

/// A transaction is run at most once more than this often.
pub(super) const LIMIT: u32 = 8;

const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(200);

/// Waits before repeat number `repeat` (from 1): doubling, with full jitter, so that those who collided do not collide again.
///
/// The pause is real time even where a test's clock stands still: what is waited for is another connection, which knows no clock of ours.
pub(super) async fn pause(entropy: &Entropy, repeat: u32) {
    let longest = FIRST.saturating_mul(1 << repeat.min(16)).min(LONGEST);
    tokio::time::sleep(longest.mul_f64(entropy.fraction())).await;
}
