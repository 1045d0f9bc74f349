//! The router on one screen.

use super::{
    Api, Problem, RequestProblem,
    gate::gate,
    observe::observe,
    openapi,
    routes::{
        agenda_tasks, agendas, audit, callback_secret, cancel_task, check_agenda, create_subscription, create_task, dead_letters,
        debug_hold, delete_subscription, deliveries, dismiss, docs_page, document, event, events, list_tasks, livez, metrics, migration,
        migration_page, openapi_json, pause, ping_subscription, problem_page, protocol, protocols, readyz, registers, replay, replay_many,
        resend, resend_failed, resume, rotate_secret, show_task, submit_task, subscription, subscriptions, task_events, task_result,
        task_status, update_subscription,
    },
};
use super::{legacy_headers, routes::merge_by_agenda}; // goes with v1
use axum::extract::{Request, State}; // goes with v1
use axum::{Router, middleware::from_fn_with_state};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Every route with its annotation.
#[expect(deprecated, reason = "v1 is served until its last caller is gone")] // goes with v1
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(openapi::base())
        .routes(routes!(merge_by_agenda::merge_by_agenda)) // goes with v1
        // the task API
        .routes(routes!(submit_task::submit_task, agenda_tasks::agenda_tasks))
        .routes(routes!(cancel_task::cancel_task))
        .routes(routes!(task_status::task_status))
        .routes(routes!(task_result::task_result))
        .routes(routes!(task_events::task_events))
        .routes(routes!(protocols::protocols))
        .routes(routes!(protocol::protocol))
        .routes(routes!(document::document_pdf))
        .routes(routes!(document::document_docx))
        .routes(routes!(document::document_html))
        .routes(routes!(document::document_json))
        .routes(routes!(agendas::agendas))
        .routes(routes!(check_agenda::check_agenda))
        .routes(routes!(registers::registers))
        // the seed's generic surface, and operation
        .routes(routes!(create_task::create_task, list_tasks::list_tasks))
        .routes(routes!(show_task::show_task))
        .routes(routes!(dead_letters::dead_letters))
        .routes(routes!(replay_many::replay_many))
        .routes(routes!(replay::replay))
        .routes(routes!(dismiss::dismiss))
        .routes(routes!(pause::pause))
        .routes(routes!(resume::resume))
        .routes(routes!(events::events))
        .routes(routes!(event::event))
        .routes(routes!(callback_secret::callback_secret))
        .routes(routes!(create_subscription::create_subscription, subscriptions::subscriptions))
        .routes(routes!(subscription::subscription, update_subscription::update_subscription, delete_subscription::delete_subscription))
        .routes(routes!(rotate_secret::rotate_secret))
        .routes(routes!(ping_subscription::ping_subscription))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(resend_failed::resend_failed))
        .routes(routes!(resend::resend))
        .routes(routes!(audit::audit))
        .routes(routes!(migration::migration))
        .routes(routes!(debug_hold::debug_hold))
        .routes(routes!(metrics::metrics))
        // open to everyone
        .routes(routes!(livez::livez))
        .routes(routes!(readyz::readyz))
        .routes(routes!(openapi_json::openapi_json))
        .routes(routes!(problem_page::problems_page))
        .routes(routes!(problem_page::problem_page))
        .routes(routes!(docs_page::docs_page))
        .routes(routes!(docs_page::docs_file))
        .routes(routes!(migration_page::migration_page))
}

/// The service: what comes first here is innermost.
pub fn router(api: Api) -> Router {
    super::observe::register_metrics();
    let (router, _) = routes().split_for_parts();
    router
        .fallback(no_such_route)
        .layer(from_fn_with_state(api.clone(), gate))
        .layer(from_fn_with_state(api.clone(), observe))
        .with_state(api)
}

async fn no_such_route(
    State(api): State<Api>, // goes with v1
    request: Request,       // goes with v1
) -> Problem {
    // goes with v1: begin
    if request.uri().path().starts_with(legacy_headers::PREFIX) {
        return merge_by_agenda::not_an_agenda_id(&api, &request.into_parts().0).await;
    }
    // goes with v1: end
    Problem::request(RequestProblem::NotFound, "There is no such address; GET /docs shows what there is.")
}
