//! Spans of traces: where a piece of work lies in its caller's trace, how long it took and how it ended.
//!
//! The span in whose future the code runs is the current one; a new one is its child unless it is given another parent. Without `telemetry.otlp_endpoint` nothing is
//! recorded, and the caller's own place is handed on as it came: a span that nobody ever gets to see must not stand between two that somebody does.

use crate::domain::trace::TraceContext;
use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId, Value, global,
    trace::{FutureExt as _, SpanBuilder, SpanContext, Status, TraceContextExt as _, TraceState, Tracer as _},
};
use std::future::Future;

pub use opentelemetry::trace::SpanKind;

/// Who makes the spans.
const SCOPE: &str = "protocol-bridge";

/// A span that has begun; it ends when this and everything that runs within it are gone.
#[derive(Debug, Clone)]
pub struct Span(Context);

impl Span {
    /// Begins a span below `parent`, or, without one, a trace.
    #[must_use]
    pub fn below(parent: Option<&TraceContext>, name: String, kind: SpanKind) -> Self {
        Self::begin(&parent.map_or_else(Context::new, remote), name, kind)
    }

    /// Begins a span below the current one.
    #[must_use]
    pub fn child(name: String, kind: SpanKind) -> Self {
        Self::begin(&Context::current(), name, kind)
    }

    fn begin(parent: &Context, name: String, kind: SpanKind) -> Self {
        let span = global::tracer(SCOPE).build_with_context(SpanBuilder::from_name(name).with_kind(kind), parent);
        Self(parent.with_span(span))
    }

    /// Where it is, for whoever carries the work on; `None` in no trace at all.
    #[must_use]
    pub fn place(&self) -> Option<TraceContext> {
        place(&self.0)
    }

    /// Says more about it.
    pub fn note(&self, key: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }

    /// It went wrong.
    pub fn fail(&self, reason: &str) {
        self.0.span().set_status(Status::error(reason.to_owned()));
    }

    /// Runs `work` with this as its current span.
    pub fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        work.with_context(self.0.clone())
    }
}

/// Says more about the current span.
pub fn note(key: &'static str, value: impl Into<Value>) {
    Context::map_current(|current| current.span().set_attribute(KeyValue::new(key, value)));
}

/// The current span's work went wrong.
pub fn fail(reason: &str) {
    Context::map_current(|current| current.span().set_status(Status::error(reason.to_owned())));
}

fn place(context: &Context) -> Option<TraceContext> {
    let span = context.span();
    let here = span.span_context();
    let parent = format!("00-{}-{}-{:02x}", here.trace_id(), here.span_id(), here.trace_flags().to_u8());
    let state = here.trace_state().header();
    Some(parent.parse::<TraceContext>().ok()?.with_state(Some(&state)))
}

fn remote(place: &TraceContext) -> Context {
    let trace = TraceId::from_hex(place.trace_id()).unwrap_or(TraceId::INVALID);
    let span = SpanId::from_hex(place.span_id()).unwrap_or(SpanId::INVALID);
    let state: TraceState = place.state().and_then(|state| state.parse().ok()).unwrap_or_default();
    Context::new().with_remote_span_context(SpanContext::new(trace, span, TraceFlags::new(place.flags()), true, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_collector_the_callers_place_is_handed_on() {
        let place: TraceContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let place = place.with_state(Some("rojo=00f067aa0ba902b7"));
        let span = Span::below(Some(&place), "outer".to_owned(), SpanKind::Server);
        assert_eq!(span.place(), Some(place.clone()));
        let inner = futures::executor::block_on(span.around(async { Span::child("inner".to_owned(), SpanKind::Client).place() }));
        assert_eq!(inner, Some(place));
        assert_eq!(Span::below(None, "outer".to_owned(), SpanKind::Server).place(), None);
    }
}
