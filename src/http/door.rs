//! Bodies at the door: media type, size, time, encoding and JSON are checked before anything else looks at the input.

use super::{Api, Problem, RequestProblem, json_scan};
use crate::base::clock::Clock;
use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderMap, header::CONTENT_TYPE},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::{error::Error as _, time::Duration};

/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How much over the limit is read and thrown away.
const HEARD_OUT_BYTES: u64 = 16 * 1024 * 1024;

/// A JSON body that passed every check that is the same for all.
#[derive(Debug)]
pub struct JsonBody(pub Value);

impl FromRequest<Api> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        media_type_is_json(&parts.headers)?;
        let bytes = read(api, body).await?;
        let text =
            std::str::from_utf8(&bytes).map_err(|error| Problem::invalid("not-utf8", "", format!("the body is not UTF-8: {error}")))?;
        json_scan::parse(text, "").map(Self).map_err(Problem::invalid_all)
    }
}

/// A JSON body, or none at all; `null` is none.
#[derive(Debug)]
pub struct OptionalJsonBody(pub Option<Value>);

impl FromRequest<Api> for OptionalJsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        let bytes = read(api, body).await?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        let request = Request::from_parts(parts, Body::from(bytes));
        JsonBody::from_request(request, api).await.map(|JsonBody(value)| Self(Some(value).filter(|value| !value.is_null())))
    }
}

/// A body that nobody looks at, of any media type. It is read all the same: the limits hold for it, and only after the whole request has come in does the
/// server notice a client that hangs up.
#[derive(Debug)]
pub struct IgnoredBody;

impl FromRequest<Api> for IgnoredBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Self::Rejection> {
        read(api, request.into_body()).await.map(|_| Self)
    }
}

fn media_type_is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: String| Err(Problem::request(RequestProblem::UnsupportedMediaType, detail));
    let Some(value) = headers.get(CONTENT_TYPE) else { return refuse("There is no Content-Type; send application/json.".to_owned()) };
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if essence != "application/json" && !(essence.starts_with("application/") && essence.ends_with("+json")) {
        return refuse(format!("Content-Type {essence:?} is not taken here; send application/json."));
    }
    match parts.find_map(|parameter| parameter.strip_prefix("charset=")).map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(()),
        Some(charset) => refuse(format!("The charset {charset:?} is not taken here; JSON is UTF-8.")),
    }
}

/// Reads a body within the limits of size and time. A client that sends too much is heard out for a while, up to [`HEARD_OUT_BYTES`]: most clients read no
/// answer while they send, and closing on them would turn the 413 into a broken connection.
async fn read(api: &Api, body: Body) -> Result<Bytes, Problem> {
    read_within(&api.clock, api.config.http.body_limit.as_u64(), body).await
}

async fn read_within(clock: &Clock, limit: u64, mut body: Body) -> Result<Bytes, Problem> {
    let mut collected = BytesMut::new();
    let mut received: u64 = 0;
    let deadline = clock.monotonic() + BODY_PATIENCE;
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = clock.sleep_until(deadline) => return Err(too_late()),
        };
        let data = match frame {
            None => break,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                return Err(Problem::invalid("body-broken", "", format!("the body could not be read to its end: {reason}")));
            }
        };
        received = received.saturating_add(data.len() as u64);
        if received <= limit {
            collected.extend_from_slice(&data);
        } else {
            collected = BytesMut::new();
            if received > limit.saturating_add(HEARD_OUT_BYTES) {
                break;
            }
        }
    }
    if received > limit { Err(too_large(limit)) } else { Ok(collected.freeze()) }
}

fn too_large(limit: u64) -> Problem {
    Problem::request(RequestProblem::PayloadTooLarge, format!("The body is over the limit of {limit} bytes.")).over_limit(limit)
}

fn too_late() -> Problem {
    Problem::request(RequestProblem::RequestTimeout, format!("The body did not arrive within {} s.", BODY_PATIENCE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{domain::time::Timestamp, http::ProblemType};
    use futures::stream;
    use std::convert::Infallible;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_body_that_trickles_is_given_up() {
        let (clock, (arrive, arriving)) = (Clock::manual(Timestamp::default()), mpsc::channel::<Result<Bytes, Infallible>>(1));
        let body = Body::from_stream(stream::unfold(arriving, |mut arriving| async { arriving.recv().await.map(|part| (part, arriving)) }));
        let mut reading = Box::pin(read_within(&clock, 1024, body));
        for _ in 0..3 {
            arrive.send(Ok(Bytes::from_static(b" "))).await.unwrap();
            assert!(futures::poll!(&mut reading).is_pending());
            clock.advance(Duration::from_millis(9_999));
        }
        assert!(futures::poll!(&mut reading).is_pending(), "each part came soon, and the whole is not late yet");
        clock.advance(Duration::from_secs(1));
        let problem = reading.await.unwrap_err();
        assert_eq!(problem.kind(), ProblemType::Request(RequestProblem::RequestTimeout));
    }
}
