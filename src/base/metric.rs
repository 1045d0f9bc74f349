//! What a metric is: name, help text, labels from closed sets, and what its values mean when several replicas have one each.

use std::marker::PhantomData;

const PREFIX: &str = "protocol_bridge_";

/// Values that a label can take.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// All of them; every combination exists from the start.
    Closed(&'static [&'static str]),
    /// A bounded set that is known when the service starts (configured callers, routes); whoever knows it registers it.
    AtStart,
}

/// How the values of several replicas become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// Each counts its own: they add up.
    Sum,
    /// Each speaks of itself or its machine: look at every one, or at the worst.
    Each,
    /// All say the same, because it comes from the database: one of them is enough. NaN until it was read, and again when it has not been read for a while, so that
    /// neither a fresh process nor one that has lost the database looks like a quiet one; Prometheus's `max` and `min` pass over NaN.
    Shared(&'static str),
}

/// A metric; the type parameter keeps counters, gauges and histograms apart.
#[derive(Debug)]
pub struct Metric<T: 'static> {
    /// Without the prefix that all names have.
    pub name: &'static str,
    pub help: &'static str,
    pub labels: &'static [(&'static str, Values)],
    pub replicas: Replicas,
    kind: PhantomData<T>,
}

#[derive(Debug)]
pub struct CounterKind;
#[derive(Debug)]
pub struct GaugeKind;
#[derive(Debug)]
pub struct HistogramKind;

pub type Counter = Metric<CounterKind>;
pub type Gauge = Metric<GaugeKind>;
pub type Histogram = Metric<HistogramKind>;

pub(super) type Labels = &'static [(&'static str, Values)];

pub(super) const fn counter(name: &'static str, labels: Labels, help: &'static str) -> Counter {
    Metric { name, help, labels, replicas: Replicas::Sum, kind: PhantomData }
}

pub(super) const fn gauge(name: &'static str, labels: Labels, replicas: Replicas, help: &'static str) -> Gauge {
    Metric { name, help, labels, replicas, kind: PhantomData }
}

pub(super) const fn histogram(name: &'static str, labels: Labels, help: &'static str) -> Histogram {
    Metric { name, help, labels, replicas: Replicas::Sum, kind: PhantomData }
}

impl<T> Metric<T> {
    pub(super) fn full_name(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    pub(super) fn describe(&self, kind: &'static str) -> Description {
        let labels = self.labels.iter().map(|(name, _)| *name).collect();
        Description { name: self.full_name(), kind, labels, replicas: self.replicas, help: self.help }
    }

    fn labels(&self, values: &[&str]) -> Vec<metrics::Label> {
        debug_assert_eq!(values.len(), self.labels.len(), "{} takes {:?}", self.name, self.labels);
        self.labels.iter().zip(values).map(|((name, _), value)| metrics::Label::new(*name, (*value).to_owned())).collect()
    }

    /// Every combination of closed label values; empty if a label's values are known at start only.
    pub(super) fn combinations(&self) -> Vec<Vec<&'static str>> {
        self.labels.iter().fold(vec![Vec::new()], |combinations, (_, values)| match values {
            Values::Closed(values) => {
                combinations.iter().flat_map(|head| values.iter().map(|value| [head.as_slice(), &[*value]].concat())).collect()
            }
            Values::AtStart => Vec::new(),
        })
    }
}

impl Counter {
    pub fn increment(&self, values: &[&str]) {
        self.add(values, 1);
    }

    /// Adding 0 makes the series exist.
    pub fn add(&self, values: &[&str], by: u64) {
        metrics::counter!(self.full_name(), self.labels(values)).increment(by);
    }
}

impl Gauge {
    pub fn set(&self, values: &[&str], to: f64) {
        metrics::gauge!(self.full_name(), self.labels(values)).set(to);
    }

    /// It is not known, or not any more.
    pub fn forget(&self, values: &[&str]) {
        self.set(values, f64::NAN);
    }

    /// As [`Gauge::forget`], for every combination of closed label values.
    pub fn forget_all(&self) {
        self.combinations().iter().for_each(|values| self.forget(values));
    }

    /// Brings its series into being: 0, or not known yet if it comes from the database.
    pub(super) fn begin(&self) {
        let shared = matches!(self.replicas, Replicas::Shared(_));
        self.combinations().iter().for_each(|values| self.set(values, if shared { f64::NAN } else { 0.0 }));
    }
}

impl Histogram {
    pub fn record(&self, values: &[&str], duration: std::time::Duration) {
        metrics::histogram!(self.full_name(), self.labels(values)).record(duration.as_secs_f64());
    }

    /// Makes the series exist without an observation.
    pub fn register(&self, values: &[&str]) {
        let _ = metrics::histogram!(self.full_name(), self.labels(values));
    }
}

/// A metric as documentation lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// With the prefix.
    pub name: String,
    /// counter, gauge or histogram.
    pub kind: &'static str,
    pub labels: Vec<&'static str>,
    pub replicas: Replicas,
    pub help: &'static str,
}
