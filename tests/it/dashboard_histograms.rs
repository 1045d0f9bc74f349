//! M-04 on a real Prometheus: whatever takes from a millisecond to twelve minutes, the panels are within one bucket of the truth.

use crate::support::{dashboards::panel, eventually, prometheus::Prometheus};
use axum::{Router, extract::State, routing::get};
use metrics_exporter_prometheus::PrometheusHandle;
use protocol_bridge::base::{
    metrics::{self, GENERATOR_PHASE, HTTP_REQUEST, LEGACY_WAIT, TASK_PICKUP, TASK_RUN},
    shutdown::Shutdown,
};
use std::{collections::BTreeMap, time::Duration};

const LIMIT: Duration = Duration::from_secs(40);
/// What takes minutes, in seconds.
const TOOK: [f64; 6] = [0.05, 1.0, 30.0, 120.0, 600.0, 719.0];
const V1: &str = "/api/v1/protocol/merge/byAgenda/{agendaId}";

#[tokio::test(flavor = "multi_thread")]
async fn what_panels_say_is_within_one_bucket_of_the_truth() {
    let recorder = metrics::install().expect("the first to install it");
    for (route, method) in [("/livez", "GET"), ("/readyz", "GET"), (V1, "POST")] {
        HTTP_REQUEST.register(&[route, method, "2xx"]);
    }
    let exporter = Exporter::start(recorder).await;
    let prometheus = Prometheus::start(&exporter.address, "key").await;
    let counted = async |metric: &str| prometheus.value(&format!("sum({metric}_count)")).await;
    eventually(LIMIT, "the series are known at 0", async || counted("protocol_bridge_http_request_seconds").await == Some(0.0)).await;

    for seconds in TOOK {
        let took = Duration::from_secs_f64(seconds);
        TASK_PICKUP.record(&[], took);
        TASK_RUN.record(&["protocol", "completed"], took);
        GENERATOR_PHASE.record(&["COLLECT"], took);
        LEGACY_WAIT.record(&["completed"], took);
        HTTP_REQUEST.record(&[V1, "POST", "2xx"], took);
    }
    for _ in 0..100 {
        HTTP_REQUEST.record(&["/livez", "GET", "2xx"], Duration::from_millis(1));
        HTTP_REQUEST.record(&["/readyz", "GET", "2xx"], Duration::from_millis(5));
    }
    eventually(LIMIT, "all is counted", async || counted("protocol_bridge_http_request_seconds").await == Some(206.0)).await;

    // The middle of six is the third; 95 % of them reach into the sixth.
    let (middle, slow) = ((20.0, 30.0), (600.0, 720.0));
    for (title, target, label, (above, below)) in [
        ("Pick-up", 0, None, middle),
        ("Pick-up", 1, None, slow),
        ("Wait times", 0, None, middle),
        ("Wait times", 1, None, slow),
        ("Run time by phase", 0, Some(("phase", "COLLECT")), middle),
        ("Run time by phase", 1, Some(("phase", "COLLECT")), slow),
        ("Run time by outcome", 0, Some(("outcome", "completed")), slow),
        ("Answer times by route, 95 %", 0, Some(("route", V1)), slow),
        ("Answer times by route, 95 %", 0, Some(("route", "/livez")), (0.0, 0.001)),
        ("Answer times by route, 95 %", 0, Some(("route", "/readyz")), (0.0025, 0.005)),
        ("Answer times", 0, None, (0.0, 0.001)),
        ("Answer times", 1, None, (0.0025, 0.005)),
    ] {
        let panel = panel(title);
        let of = |labels: &BTreeMap<String, String>| label.is_none_or(|(name, value)| labels.get(name).is_some_and(|is| is == value));
        let shown = async || {
            let series = prometheus.shown(&panel.targets[target]).await.unwrap_or_else(|error| panic!("{title}: {error}"));
            series.into_iter().find(|(labels, _)| of(labels)).and_then(|(_, values)| values.last().copied())
        };
        // A graph is drawn in whole seconds and shows a scrape at the next one.
        let text = format!("{title} says of {label:?} something between {above} and {below}");
        eventually(LIMIT, &text, async || shown().await.is_some_and(|shown| above < shown && shown <= below)).await;
    }
}

/// The process's metrics over HTTP, without the service; ends with the test.
struct Exporter {
    address: String,
    shutdown: Shutdown,
}

impl Exporter {
    async fn start(recorder: PrometheusHandle) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let router =
            Router::new().route("/metrics", get(async |State(recorder): State<PrometheusHandle>| recorder.render())).with_state(recorder);
        let shutdown = Shutdown::new();
        let hard = shutdown.hard().clone();
        shutdown.spawn("exporter", async move {
            tokio::select! {
                () = hard.cancelled() => {}
                served = axum::serve(listener, router).into_future() => served.expect("the server runs"),
            }
        });
        Self { address, shutdown }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}
