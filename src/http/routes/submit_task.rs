//! `POST /task`: submit the generation of an agenda's protocol.

use super::submit::{self, callback_url, client_reference};
use crate::{
    callers::Identity,
    domain::{ids::AgendaId, task::Kind, time::Timestamp, trace::TraceContext},
    engine::{Submission, Via},
    http::{
        Api, Problem,
        door::JsonBody,
        fields::{Fields, parsed, string},
        idempotency::{self, Content},
        shapes::{ProblemDetails, TaskStatus},
    },
};
use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// What is to be done.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "agendaId": "42", "clientReference": "state-machine-17" }))]
pub struct TaskRequest {
    /// The agenda whose protocol is wanted.
    #[schema(value_type = String, pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$")]
    pub agenda_id: AgendaId,
    /// Not before this time; with an offset. At once if it has passed or is left out.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Timestamp>,
    /// Told when the task has ended, signed with the secret of `GET /api/callback-secret`; an address as for subscriptions.
    #[schema(
        format = "uri",
        max_length = 2048,
        pattern = "^https?://[a-z][a-z0-9]{0,30}([.][a-z][a-z0-9]{0,30})*(:[1-9][0-9]{0,3})?(/[!-~]*)?$"
    )]
    pub callback_url: Option<String>,
    /// The caller's own name for this task, given back wherever the task is shown.
    #[schema(max_length = 256)]
    pub client_reference: Option<String>,
}

impl TaskRequest {
    fn read(body: Value) -> Result<Self, Problem> {
        let mut fields = Fields::of(body)?;
        let agenda_id = fields.required("agendaId", parsed);
        let run_at = fields.optional("runAt", parsed);
        let callback_url = fields.optional("callbackUrl", |value| callback_url(string(value)?));
        let client_reference = fields.optional("clientReference", |value| client_reference(string(value)?));
        fields.finish()?;
        let agenda_id = agenda_id.ok_or_else(|| Problem::invalid("missing", "/agendaId", "this field is needed"))?;
        Ok(Self { agenda_id, run_at, callback_url, client_reference })
    }
}

/// Submit the generation of an agenda's protocol.
///
/// While a task of the agenda is active, and for a repeated idempotency key, the answer is that same task with `joined: true`.
#[utoipa::path(
    post,
    path = "/task",
    tag = "tasks",
    operation_id = "submitTask",
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeating a request under the same key gives the same task. In double quotes or without.", pattern = "^[!#-~]([ -~]{0,253}[!-~])?$")),
    request_body(content = TaskRequest, content_type = "application/json"),
    responses(
        (status = 202, description = "Accepted, or joined.", body = TaskStatus, headers(
            ("Location" = String, description = "The task's status."),
            ("Retry-After" = u64, description = "When to poll, in seconds."))),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 413, description = "Too large.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The key was used for something else, or nothing is told to such a callbackUrl (target-refused).", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Not accepted; repeating is safe.", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn submit_task(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(trace): Extension<TraceContext>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let key = idempotency::of_headers(&headers)?;
    let request = TaskRequest::read(body)?;
    if let Some(url) = &request.callback_url {
        api.within_patience(api.engine.check_callback(url)).await?;
    }
    let payload = json!({ "agendaId": request.agenda_id });
    let content = Content {
        kind: Kind::Protocol,
        agenda_id: Some(&request.agenda_id),
        payload: &payload,
        run_at: request.run_at,
        callback_url: request.callback_url.as_deref(),
        client_reference: request.client_reference.as_deref(),
    };
    let idempotency = idempotency::resolve(key, None, &identity, &content)?;
    let submission = Submission {
        kind: Kind::Protocol,
        agenda_id: Some(request.agenda_id),
        payload: payload.to_string(),
        client_reference: request.client_reference,
        run_at: request.run_at,
        callback_url: request.callback_url,
        idempotency,
        caller: identity.caller.name.clone(),
        via: Via::V2,
        trace: Some(trace),
    };
    submit::submit(&api, submission).await
}
