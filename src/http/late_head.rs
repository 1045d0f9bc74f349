//! A request whose head does not arrive in time. hyper would close without a word; here the router is asked for the answer, so that it has the same problem
//! body, request id, headers, log line and metric as every other, and it is written to the connection by hand.

use axum::{
    Router,
    body::Body,
    http::{Method, Request, Uri},
    response::Response,
};
use http_body_util::BodyExt as _;
use std::{fmt::Write as _, net::SocketAddr};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tower::Service as _;

use super::server::Peer;

/// Attached to a request that stands for one whose head came too late; the gate answers it 408.
#[derive(Debug, Clone, Copy)]
pub struct LateHead;

/// Writes the router's answer to what has come of a head.
pub(super) async fn answer(router: &mut Router, peer: SocketAddr, received: &[u8], stream: &mut (impl AsyncWrite + Unpin)) {
    let Ok(response) = router.call(stand_in(received, peer)).await;
    // The client may be gone; there is nobody else to tell.
    let _ = stream.write_all(&written(response).await).await;
    let _ = stream.shutdown().await;
}

/// The request as far as its first line tells: whose route it would have been decides about headers and labels.
fn stand_in(received: &[u8], peer: SocketAddr) -> Request<Body> {
    let line = received.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let mut parts = line.split(|byte| *byte == b' ').map(|part| std::str::from_utf8(part).unwrap_or_default());
    let method = parts.next().and_then(|method| method.parse().ok()).unwrap_or(Method::GET);
    let uri = parts.next().and_then(|target| target.parse().ok()).filter(|uri: &Uri| uri.path().starts_with('/')).unwrap_or_default();
    let mut request = Request::new(Body::empty());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    request.extensions_mut().insert(Peer(peer));
    request.extensions_mut().insert(LateHead);
    request
}

async fn written(response: Response) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {}\r\n", parts.status.as_u16(), parts.status.canonical_reason().unwrap_or_default()).into_bytes();
    for (name, value) in parts.headers.iter().filter(|(name, _)| !matches!(name.as_str(), "connection" | "content-length")) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let mut end = String::new();
    let _ = write!(end, "content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    head.extend_from_slice(end.as_bytes());
    head.extend_from_slice(&body);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_what_was_wanted() {
        let of = |received: &str| {
            let request = stand_in(received.as_bytes(), ([127, 0, 0, 1], 1).into());
            format!("{} {}", request.method(), request.uri())
        };
        assert_eq!(of("POST /task?x=1 HTTP/1.1\r\nHost: loc"), "POST /task?x=1");
        assert_eq!(of("POST /ta"), "POST /ta");
        for rubbish in ["", "\r\n", "\u{1}\u{2}", "GET", "GET http://x", "ж ж"] {
            assert!(of(rubbish).ends_with(" /") || of(rubbish).ends_with("http://x"), "{rubbish:?} became {}", of(rubbish));
        }
    }
}
