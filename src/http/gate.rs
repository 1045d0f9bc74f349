//! The gate before every handler: limits of the request's head, one Host, Host and Origin where nobody has to prove anything, the sender's name, the role for
//! the route, and how often it was used. Whoever passes it on the task API is noted in the ledger.

use super::routes::merge_by_agenda; // goes with v1
use super::{Api, Problem, RequestProblem, access, late_head::LateHead, server::Peer};
use crate::{
    base::spans,
    callers::{Evidence, Identity, KeyShown},
};
use axum::{
    extract::{MatchedPath, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Uri, Version,
        header::{AUTHORIZATION, HOST, ORIGIN, USER_AGENT, WWW_AUTHENTICATE},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::net::{IpAddr, Ipv4Addr};

const MAX_URI_BYTES: usize = 8 * 1024;
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Lets a request pass with its [`Identity`] attached, or answers for it.
pub async fn gate(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let identity = identify(&api, &request);
    tracing::Span::current().record("caller", identity.caller.name.as_str());
    spans::note("caller", identity.caller.name.clone());
    let verdict = in_time(&request)
        .and_then(|()| limits(&request))
        .and_then(|()| hosts(&api, &request))
        .and_then(|()| roles(&identity, &request))
        .and_then(|()| rate(&api, &identity, &request));
    // goes with v1: begin
    let verdict = match request.extensions().get::<crate::domain::trace::TraceContext>() {
        // Boxed, so that a held call does not keep room for it.
        Some(trace) => Box::pin(merge_by_agenda::at_the_gate(&api, &identity, (request.method(), request.uri(), trace), verdict)).await,
        None => verdict,
    };
    // goes with v1: end
    if let Err(problem) = verdict {
        let mut response = problem.into_response();
        response.extensions_mut().insert(identity);
        return response;
    }
    if route_of(&request).is_some_and(|route| route.access.is_task_api()) {
        api.ledger.saw_v2(&identity);
    }
    request.extensions_mut().insert(identity.clone());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(identity);
    response
}

fn identify(api: &Api, request: &Request) -> Identity {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.0.ip());
    let forwarded: Vec<&str> = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
    api.callers.identify(Evidence {
        address: api.callers.client_address(peer, &forwarded),
        key: text(AUTHORIZATION.as_str()).and_then(bearer),
        x_caller: text("x-caller"),
        user_agent: text(USER_AGENT.as_str()),
    })
}

/// The key in `Bearer KEY`; another scheme shows none.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, key) = authorization.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn in_time(request: &Request) -> Result<(), Problem> {
    if request.extensions().get::<LateHead>().is_none() {
        return Ok(());
    }
    Err(Problem::request(RequestProblem::RequestTimeout, "The head of the request did not arrive in time."))
}

fn limits(request: &Request) -> Result<(), Problem> {
    let uri = request.uri().path_and_query().map_or(0, |both| both.as_str().len());
    if uri > MAX_URI_BYTES {
        return Err(Problem::request(RequestProblem::UriTooLong, format!("Path and query are over {MAX_URI_BYTES} bytes.")));
    }
    let headers = request.headers();
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        let detail = format!("There are over {MAX_HEADERS} header fields, or over {MAX_HEADER_BYTES} bytes of them.");
        return Err(Problem::request(RequestProblem::HeadersTooLarge, detail));
    }
    Ok(())
}

/// Where no caller has to prove anything, the service trusts whoever reaches loopback. A page from elsewhere reaches it too, through the user's browser and a
/// name that resolves to 127.0.0.1 (DNS rebinding); such a request gives itself away by Host or Origin.
fn hosts(api: &Api, request: &Request) -> Result<(), Problem> {
    one_host(request)?;
    if api.callers.is_closed() || api.config.auth.disabled {
        return Ok(());
    }
    let public =
        api.config.http.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok()).and_then(|url| url.host().map(str::to_owned));
    let ours = |host: &str| {
        matches!(host, "localhost" | "127.0.0.1" | "[::1]") || public.as_deref().is_some_and(|public| public.eq_ignore_ascii_case(host))
    };
    let refuse = |what: &str| Problem::request(RequestProblem::Forbidden, format!("This service does not answer to that {what}."));
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if authority.into_iter().chain(of_header(request.headers(), &HOST)).any(|host| !ours(&without_port(&host))) {
        return Err(refuse("Host"));
    }
    let is_ours = |origin: String| origin.split_once("://").is_some_and(|(_, authority)| ours(&without_port(authority)));
    if !of_header(request.headers(), &ORIGIN).all(is_ours) {
        return Err(refuse("Origin"));
    }
    Ok(())
}

/// RFC 9112, 3.2: a request without Host, with two, or with one that is none is answered 400: what stands before us may have understood it otherwise. HTTP/1.0
/// knows no Host.
fn one_host(request: &Request) -> Result<(), Problem> {
    let refuse = |code: &str, detail: &str| Err(Problem::invalid(code, "/header/Host", detail));
    let mut hosts = of_header(request.headers(), &HOST);
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => refuse("repeated", "comes twice"),
        (None, None) if request.version() > Version::HTTP_10 => refuse("missing", "HTTP/1.1 needs this header"),
        (Some(host), None) if !host.is_empty() && (host.contains('@') || host.parse::<Authority>().is_err()) => {
            refuse("invalid", "is no host and port")
        }
        _ => Ok(()),
    }
}

fn of_header(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn without_port(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        // Not the last colon within an IPv6 address.
        Some((host, port)) if port.bytes().all(|c| c.is_ascii_digit()) && host.starts_with('[') == host.ends_with(']') => host,
        _ => authority,
    };
    host.to_ascii_lowercase()
}

/// 401 without a key or with a wrong one, 403 with a good one that lacks the role. A path or method without a route is answered by the router.
fn roles(identity: &Identity, request: &Request) -> Result<(), Problem> {
    let Some(route) = route_of(request) else { return Ok(()) };
    if route.access.allows(identity.roles) {
        return Ok(());
    }
    Err(match identity.key {
        KeyShown::Good => Problem::request(RequestProblem::Forbidden, "The key is good, but its caller lacks the role for this call."),
        KeyShown::None => unauthorized("This call needs a key."),
        KeyShown::Wrong => unauthorized("The key is not known."),
    })
}

/// Only of those who may use it at all: what is refused above costs nothing, and neither health nor v1 is ever limited.
fn rate(api: &Api, identity: &Identity, request: &Request) -> Result<(), Problem> {
    if !route_of(request).is_some_and(|route| route.access.is_task_api()) {
        return Ok(());
    }
    api.rate_limit.grant(identity, api.clock.monotonic()).map_err(|wait| {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Problem::request(RequestProblem::TooManyRequests, format!("There may be one more in {seconds} s.")).retry_after(seconds)
    })
}

fn route_of(request: &Request) -> Option<&'static access::Route> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    path.and_then(|path| access::find(request.method(), path))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::request(RequestProblem::Unauthorized, detail)
        .with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"protocol-bridge\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_taken_off_hosts() {
        for (authority, host) in
            [("localhost:8080", "localhost"), ("[::1]:8080", "[::1]"), ("[::1]", "[::1]"), ("LocalHost", "localhost"), ("a.b:", "a.b")]
        {
            assert_eq!(without_port(authority), host);
        }
    }

    #[test]
    fn only_bearer_shows_a_key() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer"), None);
    }
}
