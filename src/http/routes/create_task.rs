//! `POST /api/tasks`: the seed's generic way to submit, `{kind?, payload, runAt?, idempotencyKey?}`.

use super::submit;
use crate::{
    callers::Identity,
    domain::{ids::AgendaId, task::Kind, time::Timestamp, trace::TraceContext},
    engine::{Submission, Via},
    http::{
        Api, Problem,
        door::JsonBody,
        fields::{Fields, kind_of, parsed, string},
        idempotency::{self, Content, check_key},
        json_scan,
        shapes::{ProblemDetails, TaskStatus},
    },
};
use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What is to be done.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "payload": "{\"note\":\"demo\",\"failUntilAttempt\":3}", "runAt": "2026-10-11T12:00:00Z", "idempotencyKey": "order-42" }))]
pub struct GenericTaskRequest {
    /// `protocol` or `demo`; left out: `protocol` if the payload has `agendaId`, else `demo`.
    #[schema(value_type = Option<String>, pattern = "^(protocol|demo)$")]
    pub kind: Option<Kind>,
    /// An object, or a string that holds one. A protocol task's holds `agendaId`; a demo task's may hold the whole numbers `failUntilAttempt` and `sleepMs`.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// Not before this time; with an offset.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// As the Idempotency-Key header.
    #[schema(max_length = 255, pattern = "^ *[!-~][ -~]*$")]
    pub idempotency_key: Option<String>,
    #[schema(ignore)]
    pub agenda_id: Option<AgendaId>,
}

impl GenericTaskRequest {
    fn read(body: Value) -> Result<Self, Problem> {
        let mut fields = Fields::of(body)?;
        let kind = fields.optional("kind", parsed::<Kind>);
        let payload = fields.required("payload", |value| match value {
            Value::Object(_) | Value::String(_) => Ok(value),
            other => Err(format!("has to be an object, or a string that holds one, not {}", kind_of(&other))),
        });
        let run_at = fields.optional("runAt", parsed);
        let idempotency_key = fields.optional("idempotencyKey", |value| check_key(string(value)?));
        let payload = payload.map_or_else(|| Ok(Map::new()), object_of).unwrap_or_else(|faults| {
            fields.refuse_all(faults);
            Map::new()
        });
        let kind = kind.unwrap_or(if payload.contains_key("agendaId") { Kind::Protocol } else { Kind::Demo });
        let agenda_id = match (kind, payload.get("agendaId")) {
            (Kind::Demo, _) => {
                // Both are whole numbers where they are given; anything else would silently ask for nothing.
                let wrong = ["failUntilAttempt", "sleepMs"].into_iter().filter(|name| {
                    payload.get(*name).is_some_and(|value| value.as_u64().is_none_or(|number| number > u64::from(u32::MAX)))
                });
                let faults = wrong.map(|name| {
                    fault("wrong-type", &format!("/payload/{name}"), format!("has to be a whole number from 0 to {}", u32::MAX))
                });
                fields.refuse_all(faults.collect());
                None
            }
            (Kind::Protocol, Some(value)) => match parsed::<AgendaId>(value.clone()) {
                Ok(agenda_id) => Some(agenda_id),
                Err(detail) => {
                    fields.refuse_all(vec![fault("invalid", "/payload/agendaId", detail)]);
                    None
                }
            },
            (Kind::Protocol, None) => {
                fields.refuse_all(vec![fault("missing", "/payload/agendaId", "a protocol task needs its agenda")]);
                None
            }
        };
        fields.finish()?;
        Ok(Self { kind: Some(kind), payload: Value::Object(payload), run_at, idempotency_key, agenda_id })
    }
}

/// The object, or the one that the string holds; what is in the string passes the same checks as the body around it.
fn object_of(payload: Value) -> Result<Map<String, Value>, Vec<crate::domain::failure::Fault>> {
    let value = match payload {
        Value::String(text) => json_scan::parse(&text, "/payload")?,
        other => other,
    };
    match value {
        Value::Object(object) => Ok(object),
        other => Err(vec![fault("wrong-type", "/payload", format!("the string has to hold an object, not {}", kind_of(&other)))]),
    }
}

fn fault(code: &str, pointer: &str, detail: impl Into<String>) -> crate::domain::failure::Fault {
    crate::domain::failure::Fault { code: code.to_owned(), pointer: pointer.to_owned(), detail: detail.into() }
}

/// Submit a task of any kind.
#[utoipa::path(
    post,
    path = "/api/tasks",
    tag = "operation",
    operation_id = "createTask",
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeating a request under the same key gives the same task. In double quotes or without.", pattern = "^[!#-~]([ -~]{0,253}[!-~])?$")),
    request_body(content = GenericTaskRequest, content_type = "application/json"),
    responses(
        (status = 202, description = "Accepted, or joined.", body = TaskStatus, headers(
            ("Location" = String, description = "The task's status."),
            ("Retry-After" = u64, description = "When to poll, in seconds."))),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "Too large.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The key was used for something else.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Not accepted; repeating is safe.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn create_task(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(trace): Extension<TraceContext>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let key = idempotency::of_headers(&headers)?;
    let request = GenericTaskRequest::read(body)?;
    let kind = request.kind.unwrap_or(Kind::Demo);
    let content = Content {
        kind,
        agenda_id: request.agenda_id.as_ref(),
        payload: &request.payload,
        run_at: request.run_at,
        callback_url: None,
        client_reference: None,
    };
    let idempotency = idempotency::resolve(key, request.idempotency_key, &identity, &content)?;
    let submission = Submission {
        kind,
        agenda_id: request.agenda_id,
        payload: request.payload.to_string(),
        client_reference: None,
        run_at: request.run_at,
        callback_url: None,
        idempotency,
        caller: identity.caller.name.clone(),
        via: Via::V2,
        trace: Some(trace),
    };
    submit::submit(&api, submission).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_seeds_example_is_a_demo_task() {
        let body = json!({ "payload": "{\"note\":\"демо ретраев\",\"failUntilAttempt\":3}", "runAt": "2026-10-11T12:00:00Z", "idempotencyKey": "order-42" });
        let request = GenericTaskRequest::read(body).unwrap();
        assert_eq!(request.kind, Some(Kind::Demo));
        assert_eq!(request.payload["failUntilAttempt"], 3);
        assert_eq!(request.idempotency_key.as_deref(), Some("order-42"));
    }

    #[test]
    fn an_agenda_makes_it_a_protocol_task() {
        for payload in [json!({ "agendaId": "42" }), json!("{\"agendaId\":\"42\"}")] {
            let request = GenericTaskRequest::read(json!({ "payload": payload })).unwrap();
            assert_eq!((request.kind, request.agenda_id.as_ref().map(AgendaId::as_str)), (Some(Kind::Protocol), Some("42")));
        }
        let explicit = GenericTaskRequest::read(json!({ "kind": "demo", "payload": { "agendaId": "../x" } })).unwrap();
        assert_eq!((explicit.kind, explicit.agenda_id), (Some(Kind::Demo), None));
    }

    #[test]
    fn payloads_of_the_wrong_shape_are_refused() {
        for payload in [
            json!({ "failUntilAttempt": "x" }),
            json!({ "sleepMs": -1 }),
            json!({ "sleepMs": 1e30 }),
            json!(1),
            json!([]),
            json!("[]"),
            json!("x"),
            json!("{\"a\":\"\\u0000\"}"),
            json!({ "agendaId": 42 }),
            json!({ "agendaId": "../x" }),
        ] {
            assert!(GenericTaskRequest::read(json!({ "payload": payload })).is_err(), "{payload}");
        }
        assert!(GenericTaskRequest::read(json!({ "kind": "protocol", "payload": {} })).is_err());
    }
}
