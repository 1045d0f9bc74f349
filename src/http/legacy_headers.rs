//! What every v1 answer carries, errors included: that the call is deprecated, since when, until when, what comes after it, and who answered.

use crate::base::config;
use axum::{
    http::{
        HeaderName, HeaderValue,
        header::{CACHE_CONTROL, LINK},
    },
    response::Response,
};
use std::time::{Duration, UNIX_EPOCH};

/// Where v1 lives.
pub const PREFIX: &str = "/api/v1/protocol/merge/byAgenda/";

pub const TASK_ID: HeaderName = HeaderName::from_static("task-id");
pub const ERROR_SOURCE: HeaderName = HeaderName::from_static("error-source");
const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Adds the headers; `Error-Source` is `bridge` unless the handler said otherwise.
pub fn add(config: &config::Legacy, response: &mut Response) {
    let headers = response.headers_mut();
    // RFC 9745: a structured-field date.
    let deprecation = format!("@{}", config.deprecated_since.as_seconds());
    headers.insert(DEPRECATION, HeaderValue::try_from(deprecation).expect("a number is a header value"));
    if let Some(sunset) = config.sunset {
        // RFC 8594: an HTTP date, which has whole seconds and no year before 1970.
        let seconds = u64::try_from(sunset.as_seconds()).unwrap_or_default();
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        headers.insert(SUNSET, HeaderValue::try_from(date).expect("a date is a header value"));
    }
    headers.insert(LINK, HeaderValue::from_static(r#"</task>; rel="successor-version", </docs/migration>; rel="deprecation""#));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.entry(ERROR_SOURCE).or_insert(HeaderValue::from_static("bridge"));
}
