//! `POST /api/dead-letters/{deadLetterId}/replay`: put a failed task back into the queue.

use crate::{
    callers::Identity,
    domain::{
        ids::{DeadLetterId, RequestId},
        task::Phase,
    },
    engine::facade::Replayed,
    http::{
        Api, Problem, RequestProblem,
        door::OptionalJsonBody,
        fields::{Fields, parsed},
        parameters::PathParameter,
        shapes::{ProblemDetails, TaskStatus},
    },
};
use axum::{Extension, extract::State, response::Response};
use serde_json::Value;
use utoipa::ToSchema;

/// How to replay.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase", example = json!({ "fromPhase": "MERGE" }))]
pub struct ReplayRequest {
    /// Forget what this phase and the later ones did: COLLECT, CHECK, MERGE or PUBLISH. Left out: go on from where it failed.
    #[schema(value_type = Option<String>, pattern = "^(COLLECT|CHECK|MERGE|PUBLISH)$")]
    pub from_phase: Option<Phase>,
}

impl ReplayRequest {
    fn read(body: Option<Value>) -> Result<Self, Problem> {
        let Some(body) = body else { return Ok(Self { from_phase: None }) };
        let mut fields = Fields::of(body)?;
        let from_phase = fields.optional("fromPhase", parsed);
        fields.finish()?;
        Ok(Self { from_phase })
    }
}

/// Put a failed task back into the queue, with its attempts reset.
#[utoipa::path(
    post,
    path = "/api/dead-letters/{deadLetterId}/replay",
    tag = "operation",
    operation_id = "replayDeadLetter",
    params(("deadLetterId" = Uuid, Path, description = "The dead letter (not the task).")),
    request_body(content = Option<ReplayRequest>, content_type = "application/json"),
    responses(
        (status = 202, description = "Queued again.", body = TaskStatus),
        (status = 400, description = "Not valid.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 404, description = "Unknown.", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "Replayed before (already-replayed), or another task of the agenda is active (agenda-busy).", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub async fn replay(
    State(api): State<Api>,
    Extension(identity): Extension<Identity>,
    Extension(request_id): Extension<RequestId>,
    PathParameter(id): PathParameter<DeadLetterId>,
    OptionalJsonBody(body): OptionalJsonBody,
) -> Result<Response, Problem> {
    let request = ReplayRequest::read(body)?;
    match api.within_patience(api.engine.replay(id, request.from_phase, &Api::author(&identity, request_id))).await? {
        Replayed::Queued(task) => Ok(super::submit::accepted(&task, false)),
        Replayed::AlreadyReplayed => Err(Problem::request(RequestProblem::AlreadyReplayed, "This dead letter was replayed before.")),
        Replayed::AgendaBusy(task) => {
            Err(Problem::request(RequestProblem::AgendaBusy, "Another task of this agenda is active; taskId names it.").about(task))
        }
        Replayed::Unknown => Err(Problem::request(RequestProblem::NotFound, "There is no such dead letter.")),
    }
}
