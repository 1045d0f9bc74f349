//! A trace collector on this machine: takes OTLP over HTTP as any does, and keeps the spans.

use super::eventually;
use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value},
    resource::v1::Resource,
    trace::v1::Span,
};
use prost::Message as _;
use protocol_bridge::base::shutdown::Shutdown;
use serde_json::{Map, Value};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

type Kept = Arc<Mutex<Vec<ExportTraceServiceRequest>>>;

/// The collector; ends with the test.
pub struct Collector {
    pub url: String,
    kept: Kept,
    shutdown: Shutdown,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let kept = Kept::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&kept));
        let shutdown = Shutdown::new();
        let hard = shutdown.hard().clone();
        shutdown.spawn("collector", async move {
            tokio::select! {
                () = hard.cancelled() => {}
                served = axum::serve(listener, router).into_future() => served.expect("the server runs"),
            }
        });
        Self { url, kept, shutdown }
    }

    pub fn spans(&self) -> Vec<Span> {
        let kept = self.kept.lock().expect("nobody panics with it");
        kept.iter()
            .flat_map(|request| &request.resource_spans)
            .flat_map(|resource| &resource.scope_spans)
            .flat_map(|scope| scope.spans.clone())
            .collect()
    }

    /// Who sent them.
    pub fn resource(&self) -> Option<Resource> {
        self.kept.lock().expect("nobody panics with it").first()?.resource_spans.first()?.resource.clone()
    }

    /// The spans of this name in this trace, once there is one.
    pub async fn named(&self, trace: &str, name: &str) -> Vec<Span> {
        let find = || self.spans().into_iter().filter(|span| hex(&span.trace_id) == trace && span.name == name).collect::<Vec<_>>();
        eventually(Duration::from_secs(30), name, async || !find().is_empty()).await;
        find()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shutdown.force();
    }
}

async fn take(State(kept): State<Kept>, body: Bytes) -> StatusCode {
    match ExportTraceServiceRequest::decode(body) {
        Ok(request) => {
            kept.lock().expect("nobody panics with it").push(request);
            StatusCode::OK
        }
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

pub fn hex(id: &[u8]) -> String {
    protocol_bridge::generator::documents::hex(id)
}

/// What is said of it, as JSON.
pub fn attributes(attributes: &[KeyValue]) -> Map<String, Value> {
    let value = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(Value::from(text.as_str())),
        any_value::Value::IntValue(number) => Some(Value::from(*number)),
        _ => None,
    };
    attributes.iter().filter_map(|attribute| Some((attribute.key.clone(), value(attribute)?))).collect()
}
