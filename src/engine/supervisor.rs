//! Keeps loops running: one that panics is counted and started again; three times in a minute end the process, because something is wrong that restarting does
//! not mend, and another replica or the next start may do better.

use super::core::Core;
use crate::base::metrics;
use futures::FutureExt as _;
use std::{collections::VecDeque, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

const PANICS: usize = 3;
const WITHIN: Duration = Duration::from_mins(1);

/// Runs the loop that `start` gives until it ends by itself.
pub(super) async fn supervise<F>(core: Arc<Core>, name: &'static str, start: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    let mut panics = VecDeque::new();
    loop {
        // `start` is called inside, too: what it makes may panic.
        if AssertUnwindSafe(async { start().await }).catch_unwind().await.is_ok() {
            return;
        }
        metrics::LOOP_PANICS.increment(&[]);
        let now = core.clock.monotonic();
        panics.push_back(now);
        while panics.front().is_some_and(|first| now.since(*first) > WITHIN) {
            panics.pop_front();
        }
        if panics.len() >= PANICS {
            tracing::error!(name, "the loop panicked {PANICS} times in a minute; the process ends");
            let _ = core.failed.set(name);
            core.shutdown.force();
            return;
        }
        tracing::error!(name, "the loop panicked and is started again");
    }
}
