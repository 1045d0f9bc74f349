//! `GET /api/deliveries`: what was told to whom, how often it was tried and how that went.

use crate::{
    domain::{
        delivery::{Sink, State as Stand},
        ids::{EventId, SubscriptionId, TaskId},
    },
    http::{
        Api, Problem,
        parameters::Query,
        shapes::{DeliveryShape, List, ProblemDetails},
    },
    store::delivery::DeliveryFilter,
};
use axum::{Json, extract::State};

/// Deliveries, newest first.
#[utoipa::path(
    get,
    path = "/api/deliveries",
    tag = "events",
    operation_id = "listDeliveries",
    params(
        ("subscriptionId" = Option<String>, Query, description = "Only to this webhook.", pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$"),
        ("sink" = Option<String>, Query, description = "Only to this sink: jetstream, subscription:ID or callback:URL.", pattern = "^(jetstream|callback:[!-~]{1,2048})?$"),
        ("taskId" = Option<String>, Query, description = "Only about this task.", pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$"),
        ("eventId" = Option<String>, Query, description = "Only of this event.", pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$"),
        ("state" = Option<String>, Query, description = "pending, delivered or failed.", pattern = "^(pending|delivered|failed)?$"),
        ("cursor" = Option<String>, Query, description = "The last page's nextCursor.", pattern = "^([A-Za-z0-9_-]{32})?$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 if left out.", minimum = 1, maximum = 200),
    ),
    responses(
        (status = 200, description = "The page.", body = List<DeliveryShape>),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn deliveries(State(api): State<Api>, mut query: Query) -> Result<Json<List<DeliveryShape>>, Problem> {
    let subscription = query.optional::<SubscriptionId>("subscriptionId").map(Sink::Subscription);
    let filter = DeliveryFilter {
        sink: query.optional::<Sink>("sink").or(subscription),
        task_id: query.optional::<TaskId>("taskId"),
        event_id: query.optional::<EventId>("eventId"),
        state: query.optional::<Stand>("state"),
    };
    let (cursor, limit) = (query.cursor(), query.limit());
    query.finish()?;
    let page = api.within_patience(api.engine.deliveries(filter, cursor, limit)).await?;
    Ok(Json(List::of(page, DeliveryShape::from)))
}
