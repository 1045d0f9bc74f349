//! The timekeeper: lets this process's clock follow the database's, and notices when the machine has been suspended.
//!
//! The clock was set when the store was opened, before anything was claimed. While the database is away the clock goes on by itself; so it does if this loop
//! dies, and a machine's own clock drifts by milliseconds an hour.

use super::core::Core;
use crate::{
    base::clock::Followed,
    store::{self, Dialect},
};
use std::{sync::Arc, time::Duration};

const MEASURE_EVERY: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What is worth telling the operator about two clocks.
const TELL: Duration = Duration::from_secs(1);

pub(super) struct Timekeeper {
    core: Arc<Core>,
}

impl Timekeeper {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) async fn run(self) {
        let Core { clock, shutdown, .. } = &*self.core;
        let mut measure_at = clock.monotonic() + MEASURE_EVERY;
        loop {
            tokio::select! {
                () = clock.sleep(LOOK_EVERY) => {}
                // A drain may last minutes, and leases are renewed by this clock until its end.
                () = shutdown.hard().cancelled() => return,
                () = self.core.drained() => return,
            }
            if let Some(suspended) = clock.notice_suspend() {
                tracing::warn!(suspendedSeconds = suspended.as_secs_f64(), "the machine was suspended; leases may be lost");
                measure_at = clock.monotonic();
            }
            if self.core.db.dialect() == Dialect::Postgres && clock.monotonic() >= measure_at {
                if let Err(error) = self.tick().await {
                    self.core.complaints.log("timekeeper", &error);
                }
                measure_at = clock.monotonic() + MEASURE_EVERY;
            }
        }
    }

    /// One measurement.
    ///
    /// # Errors
    /// When the database is away; the clock goes on as it was.
    pub(super) async fn tick(&self) -> store::Result<Followed> {
        let followed = self.core.db.follow_clock().await?;
        match followed {
            Followed::Forward(by) if by >= TELL => {
                tracing::warn!(forwardSeconds = by.as_secs_f64(), "the database's clock has jumped; ours follows");
            }
            Followed::Held(by) if by >= TELL => {
                tracing::warn!(
                    holdSeconds = by.as_secs_f64(),
                    "the database's clock has been set back; ours stands still until it has come round"
                );
            }
            Followed::Back(by) => {
                tracing::error!(backSeconds = by.as_secs_f64(), "the database's clock has been set back by a long time; ours follows");
            }
            followed => tracing::trace!(?followed, "the database's clock was measured"),
        }
        Ok(followed)
    }
}
