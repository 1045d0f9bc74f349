//! `GET /readyz`: this instance should get requests. Red while draining, and when the database has been away for 10 s; a broker that is away is not asked for.

use crate::{
    base::clock::{Clock, Monotonic},
    domain::ids::TaskId,
    engine::Paused,
    http::{Api, observe::AsIs},
};
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use uuid::Uuid;

/// How long the database may be away before this instance says it is not ready: a failover is shorter.
const GRACE: Duration = Duration::from_secs(10);
/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the database answered last; cheap to clone.
#[derive(Debug, Clone)]
pub struct LastAnswer(Arc<Mutex<Monotonic>>);

impl LastAnswer {
    /// The database has just been opened.
    #[must_use]
    pub fn now(clock: &Clock) -> Self {
        Self(Arc::new(Mutex::new(clock.monotonic())))
    }

    /// How long ago the database answered, having asked it once more.
    async fn ask(&self, api: &Api) -> Duration {
        let answered = tokio::select! {
            // A look for a task that cannot be there goes through connection, schema and index like every other.
            answer = api.engine.task(TaskId(Uuid::nil())) => answer.is_ok(),
            () = api.clock.sleep(PATIENCE) => false,
        };
        let now = api.clock.monotonic();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            *last = now;
        }
        now.since(*last)
    }
}

/// This instance should get requests.
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "readyz",
    params(("verbose" = Option<String>, Query, description = "Name each check.")),
    responses(
        (status = 200, description = "It should.", body = String, content_type = "text/plain"),
        (status = 503, description = "It should not: it drains, or its database is away.", body = String, content_type = "text/plain"),
    ))]
pub async fn readyz(State(api): State<Api>, RawQuery(query): RawQuery) -> Response {
    let draining = api.draining.is_cancelled() || api.shutdown.soft().is_cancelled();
    let away = api.database.ask(&api).await;
    let checks = [("database", away < GRACE), ("draining", !draining)];
    let ready = checks.iter().all(|(_, good)| *good);
    let mut text = String::new();
    if query.is_some_and(|query| query.split('&').any(|parameter| parameter.split('=').next() == Some("verbose"))) {
        for (name, good) in checks {
            let _ = writeln!(text, "[{}]{name} {}", if good { '+' } else { '-' }, if good { "ok" } else { "failed" });
        }
        // Neither good nor bad: somebody wants it so. Requests are served all the same.
        let _ = match api.engine.paused() {
            Some(Paused { since, by }) => writeln!(text, "[+]claiming paused since {since} by {by}"),
            None => writeln!(text, "[+]claiming ok"),
        };
    }
    text.push_str(if ready { "ok\n" } else { "not ready\n" });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = (status, text).into_response();
    response.extensions_mut().insert(AsIs);
    response
}
