//! `GET /api/migration`: who still uses v1, since when, and whether it can be removed.

use crate::http::{
    Api, Problem,
    shapes::{Migration, ProblemDetails},
};
use axum::{Json, extract::State};

/// Who still uses v1, and whether it can be removed.
///
/// The account is the database's: it says the same on every replica and after a restart. Other replicas' newest counts may be a second late, never the fact that
/// a caller called v1.
#[utoipa::path(
    get,
    path = "/api/migration",
    tag = "operation",
    operation_id = "migration",
    responses(
        (status = 200, description = "The account.", body = Migration),
        (status = 503, description = "The database does not answer.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn migration(State(api): State<Api>) -> Result<Json<Migration>, Problem> {
    let report = api.within_patience(api.ledger.report()).await?;
    Ok(Json(Migration::of(&api.config.legacy, report, api.clock.now())))
}
