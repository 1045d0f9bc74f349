//! Gauges about the process and its machine, refreshed by one loop.

use crate::{
    base::{clock::Clock, metrics, shutdown::Shutdown},
    store::Db,
};
use std::{path::PathBuf, time::Duration};

const REFRESH: Duration = Duration::from_secs(5);

pub(super) struct Gauges {
    db: Db,
    clock: Clock,
    data_dir: PathBuf,
}

impl Gauges {
    pub(super) fn new(db: Db, clock: Clock, data_dir: PathBuf) -> Self {
        Self { db, clock, data_dir }
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
        match rustix::fs::statvfs(&self.data_dir) {
            #[expect(clippy::cast_precision_loss, reason = "nobody needs a disk's free space to the byte")]
            Ok(disk) => metrics::DISK_FREE.set(&[], (disk.f_bavail * disk.f_frsize) as f64),
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "free space cannot be read"),
        }
    }
}
