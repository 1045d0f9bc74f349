//! `GET /debug/hold?seconds=N`: an answer that comes late on purpose. Called through one proxy after the other it shows which hop cuts long calls.

use crate::http::{Api, Problem, RequestProblem, parameters::Query, shapes::ProblemDetails};
use axum::extract::State;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

/// Longer than any v1 call may sensibly be held.
const MAX_SECONDS: u64 = 3600;
/// Nobody needs more at once to find a hop.
const MOST_AT_ONCE: usize = 8;
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A place among those held; given back however the call ends.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let taken = HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| (held < MOST_AT_ONCE).then_some(held + 1));
        // Not `then_some`: a place that was not taken must not be given back.
        taken.is_ok().then(|| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answer after N seconds, with nothing sent before: find the hop that cuts long calls. Off unless http.debug_hold is set.
#[utoipa::path(
    get,
    path = "/debug/hold",
    tag = "operation",
    operation_id = "debugHold",
    params(("seconds" = u64, Query, description = "How long.", minimum = 0, maximum = 3600, example = 1)),
    responses(
        (status = 200, description = "The call got through.", body = String, content_type = "text/plain"),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Switched off (http.debug_hold).", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "Enough calls are held.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "This instance is about to stop.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn debug_hold(State(api): State<Api>, mut query: Query) -> Result<String, Problem> {
    if !api.config.http.debug_hold {
        return Err(Problem::request(RequestProblem::NotFound, "This is switched off (http.debug_hold)."));
    }
    let seconds = query.required::<u64>("seconds");
    query.finish()?;
    let seconds = seconds.filter(|seconds| *seconds <= MAX_SECONDS);
    let seconds =
        seconds.ok_or_else(|| Problem::invalid("invalid", "/query/seconds", format!("has to be a number from 0 to {MAX_SECONDS}")))?;
    let Some(_place) = Place::take() else {
        return Err(Problem::request(RequestProblem::TooManyRequests, format!("{MOST_AT_ONCE} calls are held already.")).retry_after(60));
    };
    tokio::select! {
        () = api.clock.sleep(Duration::from_secs(seconds)) => Ok(format!("held for {seconds} s\n")),
        () = api.shutdown.soft().cancelled() => Err(Problem::request(RequestProblem::Draining, "This instance is about to stop.").retry_after(1)),
    }
}
