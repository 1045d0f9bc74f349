//! The listener: passes hints on between this process and the others, over one connection of its own to PostgreSQL.
//!
//! Hints make things quick and nothing right: behind each stands a poll. What many say within 10 ms is said once. A connection that is lost, or that a probe
//! finds cut without a word, is opened anew; since nobody knows what was missed, everything is looked at then, and the others are asked to look, too. A crash
//! loses hints and nothing else.

use super::{core::Core, outage::Backoff};
use crate::{
    base::{chain::chain, metrics},
    store::{self, Hints, Wakeups},
};
use std::{sync::Arc, time::Duration};

/// What is said, and what is heard, within this time is one hint.
const SPACING: Duration = Duration::from_millis(10);
const PROBE_EVERY: Duration = Duration::from_secs(3);

pub(super) struct Listener {
    core: Arc<Core>,
}

/// Why nobody listens any more.
enum Ended {
    /// The process drains, or stops.
    Drained,
    Lost(store::Error),
}

impl Listener {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) async fn run(self) {
        let core = &self.core;
        let mut backoff = Backoff::default();
        let mut told = false;
        loop {
            let opened = tokio::select! {
                opened = core.db.wakeups() => opened,
                () = core.shutdown.hard().cancelled() => return,
                () = core.drained() => return,
            };
            let error = match opened {
                // There is no other process.
                Ok(None) => return metrics::WAKEUP_LISTENER_UP.set(&[], 1.0),
                Ok(Some(wakeups)) => {
                    metrics::WAKEUP_LISTENER_UP.set(&[], 1.0);
                    if std::mem::take(&mut told) {
                        tracing::info!("hints from other processes arrive again");
                    }
                    backoff.over();
                    match self.serve(wakeups).await {
                        Ended::Drained => return,
                        Ended::Lost(error) => error,
                    }
                }
                Err(error) => error,
            };
            metrics::WAKEUP_LISTENER_UP.set(&[], 0.0);
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(error = chain(&error), "hints from other processes do not arrive; polling goes on without them");
            }
            tokio::select! {
                () = core.clock.sleep(backoff.next(core)) => {}
                () = core.shutdown.hard().cancelled() => return,
                () = core.drained() => return,
            }
        }
    }

    async fn serve(&self, mut wakeups: Wakeups) -> Ended {
        let Core { clock, shutdown, others, .. } = &*self.core;
        // From now on nothing is missed; what was missed before is looked for.
        self.pass_on(Hints::ALL);
        others.tell(Hints::ALL);
        let mut heard = Hints::default();
        let mut to_send = false;
        let now = clock.monotonic();
        let (mut pass_on_at, mut send_at, mut probe_at) = (now, now, now + self.core.jittered(PROBE_EVERY, 0.2));
        loop {
            let done = tokio::select! {
                hints = wakeups.next() => hints.map(|hints| heard = heard.and(hints)),
                () = others.asked(), if !to_send => {
                    to_send = true;
                    Ok(())
                }
                () = clock.sleep_until(send_at), if to_send => {
                    to_send = false;
                    send_at = clock.monotonic() + SPACING;
                    send(&mut wakeups, others.take()).await
                }
                () = clock.sleep_until(pass_on_at), if heard.any() => {
                    self.pass_on(std::mem::take(&mut heard));
                    pass_on_at = clock.monotonic() + SPACING;
                    Ok(())
                }
                () = clock.sleep_until(probe_at) => {
                    probe_at = clock.monotonic() + self.core.jittered(PROBE_EVERY, 0.2);
                    wakeups.probe().await
                }
                () = shutdown.hard().cancelled() => return Ended::Drained,
                () = self.core.drained() => {
                    // The last attempt's end is worth telling; if it cannot be told, polls find it.
                    let _ = send(&mut wakeups, others.take()).await;
                    return Ended::Drained;
                }
            };
            if let Err(error) = done {
                return Ended::Lost(error);
            }
        }
    }

    fn pass_on(&self, hints: Hints) {
        if hints.due {
            self.core.handover.hinted();
        }
        if hints.changed {
            self.core.hub.hinted();
            self.core.feed.look();
        }
    }
}

async fn send(wakeups: &mut Wakeups, hints: Hints) -> store::Result<()> {
    if hints.any() { wakeups.send(hints).await } else { Ok(()) }
}
