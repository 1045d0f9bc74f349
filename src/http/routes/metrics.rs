//! `GET /metrics`: for Prometheus.

use crate::{base::metrics, http::Api};
use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

/// Every metric, in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operation", operation_id = "metrics",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain; version=0.0.4")))]
pub async fn metrics(State(api): State<Api>) -> Response {
    api.bridge.show_longest_wait(); // goes with v1
    metrics::DB_POOL_IN_USE.set(&[], f64::from(api.db.in_use()));
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], api.metrics.render()).into_response()
}
