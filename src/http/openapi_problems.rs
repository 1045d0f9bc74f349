//! Which problems each route may answer: completes the OpenAPI document's responses, with an example of every problem.

use super::{
    Problem, ProblemType, RequestProblem as R,
    access::{self, Access},
    problem::MEDIA_TYPE,
};
use crate::domain::{
    failure::{Failure, FailureCode as F},
    ids::{RequestId, TaskId},
};
use axum::http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

const TASK: TaskId = TaskId(Uuid::from_u128(0x0198_c0de_7a3e_7c11_9d2b_3f5a_6071_8293));
const REQUEST: RequestId = RequestId(Uuid::from_u128(0x0198_c0df_0000_7000_8000_0000_0000_0001));

/// Adds to every operation the problems it may answer, and to the components an example of each.
pub fn add(document: &mut Value) {
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap_or_default();
            for kind in problems(&method, path) {
                describe(&mut operation["responses"], kind);
            }
        }
    }
    for kind in ProblemType::all() {
        let entry = kind.entry();
        document["components"]["examples"][entry.code] =
            json!({ "summary": entry.title, "description": entry.meaning, "value": example(kind) });
    }
}

fn describe(responses: &mut Value, kind: ProblemType) {
    let entry = kind.entry();
    let response = &mut responses[entry.status.to_string()];
    if response.is_null() {
        *response = json!({ "description": format!("{}.", entry.title) });
    }
    let content = &mut response["content"][MEDIA_TYPE];
    if content.is_null() {
        *content = json!({ "schema": { "$ref": "#/components/schemas/ProblemDetails" } });
    }
    content["examples"][entry.code] = json!({ "$ref": format!("#/components/examples/{}", entry.code) });
}

fn example(kind: ProblemType) -> Value {
    let entry = kind.entry();
    let problem = match kind {
        ProblemType::Failure(code) => Problem::failure(&Failure::new(code, entry.meaning)).about(TASK),
        ProblemType::Request(R::BridgeTimeout) => Problem::request(R::BridgeTimeout, entry.meaning).about(TASK).ask_again_after(30),
        ProblemType::Request(kind @ (R::Draining | R::NotFinished | R::AgendaBusy)) => Problem::request(kind, entry.meaning).about(TASK),
        ProblemType::Request(kind) => Problem::request(kind, entry.meaning),
    };
    serde_json::from_str(&problem.body(REQUEST)).expect("a problem's body is JSON")
}

/// What a route may answer besides its own.
fn problems(method: &Method, path: &str) -> Vec<ProblemType> {
    let mut kinds = vec![R::Forbidden, R::UriTooLong, R::HeadersTooLarge];
    let mut failures = vec![F::Internal];
    if access::find(method, path).is_some_and(|route| route.access != Access::Open) {
        kinds.extend([R::Unauthorized, R::Unavailable]);
    }
    if access::find(method, path).is_some_and(|route| route.access.is_task_api()) {
        kinds.push(R::TooManyRequests);
    }
    if *method == Method::POST {
        kinds.extend([R::InvalidRequest, R::RequestTimeout, R::PayloadTooLarge]);
    }
    match (method.as_str(), path) {
        // goes with v1: begin
        ("POST", "/api/v1/protocol/merge/byAgenda/{agendaId}") => {
            kinds.extend([R::LegacyGone, R::LegacyBrownout, R::Draining, R::Overloaded, R::BridgeTimeout]);
            failures = F::ALL.to_vec();
        }
        // goes with v1: end
        ("POST", "/task" | "/api/tasks") => kinds.extend([R::UnsupportedMediaType, R::IdempotencyKeyReused, R::Overloaded]),
        ("POST", "/api/dead-letters/replay") => kinds.push(R::UnsupportedMediaType),
        ("POST", "/api/dead-letters/{deadLetterId}/replay") => {
            kinds.extend([R::UnsupportedMediaType, R::NotFound, R::AlreadyReplayed, R::AgendaBusy]);
        }
        ("DELETE", "/task/{taskId}") => kinds.extend([R::InvalidRequest, R::NotFound, R::AlreadyFinished]),
        ("GET", "/task/{taskId}/result") => {
            kinds.extend([R::InvalidRequest, R::NotFound, R::NotFinished]);
            failures = F::ALL.to_vec();
        }
        ("GET", "/api/agendas/{agendaId}/check") => {
            kinds.push(R::InvalidRequest);
            failures.extend([F::AgendaNotFound, F::AgendaInvalid, F::AgendaTooLarge, F::AgendaSourceUnavailable]);
        }
        ("GET", "/api/agendas") => {
            kinds.push(R::InvalidRequest);
            failures.push(F::AgendaSourceUnavailable);
        }
        ("GET", path) if path.contains("/document.") => kinds.extend([R::InvalidRequest, R::NotFound, R::RangeNotSatisfiable]),
        ("GET", path) if path.contains('{') => kinds.extend([R::InvalidRequest, R::NotFound]),
        ("GET", "/debug/hold") => kinds.extend([R::InvalidRequest, R::NotFound, R::TooManyRequests, R::Draining]),
        ("GET", "/task" | "/protocol" | "/api/tasks" | "/api/dead-letters") => kinds.push(R::InvalidRequest),
        _ => {}
    }
    kinds.into_iter().map(ProblemType::Request).chain(failures.into_iter().map(ProblemType::Failure)).collect()
}
