//! How long a transaction took, told to the metric under its name.

use crate::base::{
    clock::{Clock, Monotonic},
    metrics,
};

/// From the call until it is settled, queueing and repeats included.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    name: &'static str,
    clock: Clock,
    start: Monotonic,
}

impl Measure {
    pub(super) fn start(name: &'static str, clock: &Clock) -> Self {
        Self { name, clock: clock.clone(), start: clock.monotonic() }
    }

    pub(super) fn record(&self) {
        // A label's values are a closed set: a name nobody declared must not make a new series.
        let name = if metrics::TRANSACTIONS.contains(&self.name) { self.name } else { "other" };
        metrics::DB_TRANSACTION.record(&[name], self.clock.monotonic().since(self.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use metrics_exporter_prometheus::PrometheusBuilder;
    use std::time::Duration;

    #[test]
    fn a_name_that_nobody_declared_is_counted_as_other() {
        let clock = Clock::manual(Timestamp::default());
        let recorder = PrometheusBuilder::new().build_recorder();
        ::metrics::with_local_recorder(&recorder, || {
            let measures = [Measure::start("submit_task", &clock), Measure::start("made_up", &clock)];
            clock.advance(Duration::from_secs(2));
            measures.iter().for_each(Measure::record);
        });
        let text = recorder.handle().render();
        for name in ["submit_task", "other"] {
            assert!(text.contains(&format!("protocol_bridge_db_transaction_seconds_sum{{name=\"{name}\"}} 2")), "{text}");
        }
        assert!(!text.contains("made_up"), "{text}");
    }
}
