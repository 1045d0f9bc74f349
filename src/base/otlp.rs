//! Sends spans to an OpenTelemetry collector: OTLP over HTTP with protobuf bodies, as `telemetry.otlp_endpoint` says.
//!
//! Spans wait in a bounded queue and are sent in batches from a thread of their own; what does not fit is dropped. So a collector that is slow or away costs spans
//! and one line in the log, and never time of a request or a task. On a crash the last second's spans are lost.

use super::{build::VERSION, chain::chain, config::Telemetry};
use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::KeyValue;
use opentelemetry::global;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// Spans leave this often, earlier when there are many.
const EVERY: Duration = Duration::from_secs(1);
const QUEUE: usize = 8192;
/// How long the collector may take for a batch.
const ANSWER: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(2);
/// How long the end of the process waits for the last batch.
const LAST: Duration = Duration::from_secs(2);
/// Where the collector takes spans, below the configured address.
const PATH: &str = "/v1/traces";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Why spans cannot be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the HTTP client cannot be built")]
    Client(#[from] reqwest::Error),
    #[error("the exporter cannot be built")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Lets this process's spans be sent from now on, if an endpoint is configured; a second call changes nothing. Runs in the runtime that will send them.
///
/// # Errors
/// When the exporter cannot be built. A collector that is away is no error.
pub fn install(config: &Telemetry) -> Result<(), Error> {
    let Some(endpoint) = config.otlp_endpoint.as_deref() else { return Ok(()) };
    if PROVIDER.get().is_some() {
        return Ok(());
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Sender::new()?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(ANSWER)
        .with_endpoint(address(endpoint))
        .build()?;
    let batches = BatchConfigBuilder::default().with_scheduled_delay(EVERY).with_max_queue_size(QUEUE).build();
    let about_us = Resource::builder().with_service_name("protocol-bridge").with_attribute(KeyValue::new("service.version", VERSION));
    let provider = SdkTracerProvider::builder()
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
        // Whoever began the trace decides whether it is recorded; of our own, all are.
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_resource(about_us.build())
        .build();
    global::set_tracer_provider(PROVIDER.get_or_init(|| provider).clone());
    Ok(())
}

/// Sends what is left, for at most two seconds; nothing is recorded afterwards.
pub async fn finish() {
    let Some(provider) = PROVIDER.get() else { return };
    // It blocks its thread, and the sending itself needs the runtime.
    let finished = tokio::task::spawn_blocking(|| provider.shutdown_with_timeout(LAST)).await;
    if let Ok(Err(error)) = finished {
        tracing::debug!(error = chain(&error), "the last spans were not sent");
    }
}

fn address(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") }
}

/// The client: our HTTP library on the service's runtime, asked from the exporter's thread.
#[derive(Debug)]
struct Sender {
    client: reqwest::Client,
    runtime: Handle,
    away: AtomicBool,
}

impl Sender {
    fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("protocol-bridge/", env!("CARGO_PKG_VERSION")))
            .timeout(ANSWER)
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, runtime: Handle::current(), away: AtomicBool::new(false) })
    }

    /// Says when the collector goes and when it comes, not for each batch in between.
    fn tell(&self, failed: Option<String>) {
        match failed {
            Some(error) if !self.away.swap(true, Ordering::Relaxed) => {
                tracing::warn!(error, "the trace collector does not take spans; they are dropped until it does");
            }
            None if self.away.swap(false, Ordering::Relaxed) => tracing::info!("the trace collector takes spans again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let client = self.client.clone();
        let exchange = async move {
            let answer = client.execute(request).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        };
        let answered = match self.runtime.spawn(exchange).await {
            Ok(answered) => answered.map_err(HttpError::from),
            // The runtime ends.
            Err(cancelled) => Err(cancelled.into()),
        };
        match answered {
            Ok((status, body)) => {
                self.tell((!status.is_success()).then(|| format!("it answered {status}")));
                let mut response = Response::new(body);
                *response.status_mut() = status;
                Ok(response)
            }
            Err(error) => {
                self.tell(Some(chain(&*error)));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_path_is_added_unless_it_is_there() {
        for endpoint in ["http://otel:4318", "http://otel:4318/", "http://otel:4318/v1/traces"] {
            assert_eq!(address(endpoint), "http://otel:4318/v1/traces");
        }
        assert_eq!(address("https://example.org/otlp"), "https://example.org/otlp/v1/traces");
    }
}
