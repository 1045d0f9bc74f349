//! Gauges about the process and its machine, refreshed by one loop, which also folds histograms' observations into their buckets: where nobody asks for
//! `/metrics` they would otherwise pile up.

use crate::{
    base::{clock::Clock, disk::FreeSpace, metrics, shutdown::Shutdown, supervisor},
    store::Db,
};
use metrics_exporter_prometheus::PrometheusHandle;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

const REFRESH: Duration = Duration::from_secs(5);

pub(super) struct Gauges {
    db: Db,
    clock: Clock,
    disk: FreeSpace,
    metrics: PrometheusHandle,
}

impl Gauges {
    pub(super) fn new(db: Db, clock: Clock, disk: FreeSpace, metrics: PrometheusHandle) -> Self {
        Self { db, clock, disk, metrics }
    }

    pub(super) fn start(self, shutdown: &Shutdown) {
        self.tick();
        let (clock, gauges, soft) = (self.clock.clone(), Arc::new(self), shutdown.soft().clone());
        supervisor::spawn(&clock, shutdown, "process gauges", move || Arc::clone(&gauges).run(soft.clone()));
    }

    async fn run(self: Arc<Self>, soft: CancellationToken) {
        loop {
            tokio::select! {
                () = self.clock.sleep(REFRESH) => self.tick(),
                () = soft.cancelled() => return,
            }
        }
    }

    fn tick(&self) {
        self.metrics.run_upkeep();
        metrics::DB_POOL_IN_USE.set(&[], f64::from(self.db.in_use()));
        metrics::DB_POOL_LIMIT.set(&[], f64::from(self.db.most_connections()));
        if let Some(free) = self.disk.bytes() {
            #[expect(clippy::cast_precision_loss, reason = "nobody needs a disk's free space to the byte")]
            metrics::DISK_FREE.set(&[], free as f64);
        }
    }
}
