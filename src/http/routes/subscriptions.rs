//! `GET /api/subscriptions`: who is told about events.

use crate::http::{
    Api, Problem,
    shapes::{SubscriptionList, SubscriptionShape},
};
use axum::{Json, extract::State};

/// All webhooks, those of the configuration included; oldest first.
#[utoipa::path(
    get,
    path = "/api/subscriptions",
    tag = "events",
    operation_id = "listSubscriptions",
    responses((status = 200, description = "All of them.", body = SubscriptionList))
)]
pub async fn subscriptions(State(api): State<Api>) -> Result<Json<SubscriptionList>, Problem> {
    let items = api.within_patience(api.engine.subscriptions()).await?;
    Ok(Json(SubscriptionList { items: items.into_iter().map(SubscriptionShape::from).collect(), next_cursor: None }))
}
