//! Keeps loops running: one that panics is counted and started again; three times in a minute end the process, because something is wrong that restarting does
//! not mend, and another replica or the next start may do better.

use super::{clock::Clock, metrics, shutdown::Shutdown};
use futures::FutureExt as _;
use std::{collections::VecDeque, future::Future, panic::AssertUnwindSafe, time::Duration};

const PANICS: usize = 3;
const WITHIN: Duration = Duration::from_mins(1);

/// Runs the loop that `start` gives in the background until it ends by itself.
pub fn spawn<F>(clock: &Clock, shutdown: &Shutdown, name: &'static str, start: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (clock, supervised) = (clock.clone(), shutdown.clone());
    shutdown.spawn(name, async move { supervise(&clock, &supervised, name, start).await });
}

async fn supervise<F>(clock: &Clock, shutdown: &Shutdown, name: &'static str, start: impl Fn() -> F)
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
        let now = clock.monotonic();
        panics.push_back(now);
        while panics.front().is_some_and(|first| now.since(*first) > WITHIN) {
            panics.pop_front();
        }
        if panics.len() >= PANICS {
            tracing::error!(name, "the loop panicked {PANICS} times in a minute; the process ends");
            shutdown.fail(name);
            return;
        }
        tracing::error!(name, "the loop panicked and is started again");
    }
}
