//! Gauges about the process and its machine, refreshed by one loop.

use crate::{
    base::{clock::Clock, disk::FreeSpace, metrics, shutdown::Shutdown},
    store::Db,
};
use std::time::Duration;

const REFRESH: Duration = Duration::from_secs(5);

pub(super) struct Gauges {
    db: Db,
    clock: Clock,
    disk: FreeSpace,
}

impl Gauges {
    pub(super) fn new(db: Db, clock: Clock, disk: FreeSpace) -> Self {
        Self { db, clock, disk }
    }

    pub(super) fn start(self, shutdown: &Shutdown) {
        self.tick();
        let soft = shutdown.soft().clone();
        shutdown.spawn("process gauges", async move {
            loop {
                tokio::select! {
                    () = self.clock.sleep(REFRESH) => self.tick(),
                    () = soft.cancelled() => return,
                }
            }
        });
    }

    fn tick(&self) {
        metrics::DB_POOL_IN_USE.set(&[], f64::from(self.db.in_use()));
        if let Some(free) = self.disk.bytes() {
            #[expect(clippy::cast_precision_loss, reason = "nobody needs a disk's free space to the byte")]
            metrics::DISK_FREE.set(&[], free as f64);
        }
    }
}
