//! `GET /api/events/{eventId}`: one event, whole; where `dataref` leads.

use crate::{
    domain::{event::MEDIA_TYPE, ids::EventId},
    http::{Api, Problem, RequestProblem, parameters::PathParameter, shapes::ProblemDetails},
};
use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};

/// One event, as it was told or, if it was too large for that, as its reference stands for.
#[utoipa::path(
    get,
    path = "/api/events/{eventId}",
    tag = "events",
    operation_id = "event",
    params(("eventId" = Uuid, Path, description = "The event's `id`, which is the `webhook-id` as well.")),
    responses(
        (status = 200, description = "The CloudEvent.", body = Object, content_type = "application/cloudevents+json"),
        (status = 400, description = "Not an event's id.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown, or older than 30 days.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn event(State(api): State<Api>, PathParameter(id): PathParameter<EventId>) -> Result<Response, Problem> {
    let event = api.within_patience(api.engine.event(id)).await?.ok_or_else(|| {
        Problem::request(RequestProblem::NotFound, "There is no such event, or it is older than engine.retention_events (30 days).")
    })?;
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], event.body).into_response())
}
