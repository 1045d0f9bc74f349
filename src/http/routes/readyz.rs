//! `GET /readyz`: this instance should get requests. Red while draining, when the database has been away for 10 s, and when its schema lacks what this program
//! needs; a broker that is away is not asked for.

use crate::{
    base::clock::{Clock, Monotonic},
    domain::ids::TaskId,
    engine::Paused,
    http::{Api, observe::AsIs},
    store::{self, task},
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

/// What the database has said of late; cheap to clone.
#[derive(Debug, Clone)]
pub struct LastAnswer(Arc<Mutex<Said>>);

#[derive(Debug, Clone, Copy)]
struct Said {
    at: Monotonic,
    /// Whether it has the tables that this program needs.
    schema_fits: bool,
}

impl LastAnswer {
    /// The database has just been opened, and its schema looked at.
    #[must_use]
    pub fn now(clock: &Clock) -> Self {
        Self(Arc::new(Mutex::new(Said { at: clock.monotonic(), schema_fits: true })))
    }

    /// How long ago it answered, and whether its schema fitted then, having asked it once more.
    async fn ask(&self, api: &Api) -> (Duration, bool) {
        // Looking for a task that cannot be there goes through connection, schema and index like everything else.
        let look = api.db.read("schema", |tx| {
            Box::pin(async move {
                task::find(tx, TaskId(Uuid::nil())).await?;
                store::is_current(tx).await
            })
        });
        let schema_fits = tokio::select! {
            answer = look => match answer {
                Ok(fits) => Some(fits),
                Err(error) if error.is_unavailable() => None,
                // It answers, and not with what is asked for.
                Err(_) => Some(false),
            },
            () = api.clock.sleep(PATIENCE) => None,
        };
        let now = api.clock.monotonic();
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema_fits) = schema_fits {
            *said = Said { at: now, schema_fits };
        }
        (now.since(said.at), said.schema_fits)
    }
}

/// This instance should get requests.
#[utoipa::path(get, path = "/readyz", tag = "health", operation_id = "readyz",
    params(("verbose" = Option<String>, Query, description = "Name each check.")),
    responses(
        (status = 200, description = "It should.", body = String, content_type = "text/plain"),
        (status = 503, description = "It should not: it drains, or its database is away or has the wrong schema.", body = String, content_type = "text/plain"),
    ))]
pub async fn readyz(State(api): State<Api>, RawQuery(query): RawQuery) -> Response {
    let draining = api.draining.is_cancelled() || api.shutdown.soft().is_cancelled();
    let (away, schema_fits) = api.database.ask(&api).await;
    let checks = [("database", away < GRACE), ("schema", schema_fits), ("draining", !draining)];
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
