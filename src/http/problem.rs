//! Problem details (RFC 9457): the one shape of every error answer.
//!
//! A handler says what is wrong; [`super::observe`] writes the body, because the body's `instance` is the request's id. What is meant for people inside
//! (`because`) goes to the log there, once, under the same id, and never out.

use super::{ProblemType, RequestProblem};
use crate::domain::{
    failure::{Failure, FailureCode, Fault},
    ids::{RequestId, TaskId},
    task::{Phase, Task},
};
use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;
use std::{error::Error, sync::Arc};

/// The media type of problems.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Something that went wrong, as it will be told.
#[derive(Debug, Clone)]
pub struct Problem(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    kind: ProblemType,
    detail: String,
    task: Option<TaskId>,
    phase: Option<Phase>,
    attempt: Option<u32>,
    errors: Vec<Fault>,
    limit_bytes: Option<u64>,
    successor: Option<&'static str>,
    retry_after_seconds: Option<u64>,
    headers: HeaderMap,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Problem {
    /// A request that could not be served; `detail` is a sentence for the client.
    #[must_use]
    pub fn request(kind: RequestProblem, detail: impl Into<String>) -> Self {
        Self::new(ProblemType::Request(kind), detail.into())
    }

    /// One thing is wrong with the request, at `pointer`: a JSON pointer into the body, or into `/path`, `/query`, `/header`.
    #[must_use]
    pub fn invalid(code: &str, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid_all(vec![Fault { code: code.to_owned(), pointer: pointer.into(), detail: detail.into() }])
    }

    /// Everything that is wrong with the request.
    #[must_use]
    pub fn invalid_all(errors: Vec<Fault>) -> Self {
        let detail = match errors.as_slice() {
            [only] if only.pointer.is_empty() => only.detail.clone(),
            [only] => format!("{}: {}", only.pointer, only.detail),
            several => format!("{} things are wrong; errors names each.", several.len()),
        };
        let mut problem = Self::request(RequestProblem::InvalidRequest, detail);
        problem.0.errors = errors;
        problem
    }

    /// Something broke inside. Outside: only that; the cause goes to the log.
    #[must_use]
    pub fn internal(cause: impl Error + Send + Sync + 'static) -> Self {
        Self::new(ProblemType::Failure(FailureCode::Internal), FailureCode::Internal.entry().what_to_do.to_owned()).because(cause)
    }

    /// A failure outside of any task, such as an agenda source that does not answer.
    #[must_use]
    pub fn failure(failure: &Failure) -> Self {
        let mut detail = failure.message.clone();
        if let Some(more) = &failure.detail {
            detail.push(' ');
            detail.push_str(more);
        }
        if failure.code == FailureCode::Internal {
            // Its message was written for the log.
            FailureCode::Internal.entry().what_to_do.clone_into(&mut detail);
        }
        let mut problem = Self::new(ProblemType::Failure(failure.code), detail);
        (problem.0.phase, problem.0.errors) = (failure.phase, failure.errors.clone());
        problem
    }

    /// The failure of a task that failed for good, or its cancel.
    #[must_use]
    pub fn of_task(task: &Task) -> Self {
        let mut problem = match &task.failure {
            Some(failure) => Self::failure(failure),
            None => Self::failure(&Failure::new(FailureCode::Cancelled, "The task was cancelled.")),
        };
        problem.0.attempt = Some(task.attempt_no);
        problem.about(task.id)
    }

    fn new(kind: ProblemType, detail: String) -> Self {
        Self(Box::new(Content {
            kind,
            detail,
            task: None,
            phase: None,
            attempt: None,
            errors: Vec::new(),
            limit_bytes: None,
            successor: None,
            retry_after_seconds: None,
            headers: HeaderMap::new(),
            cause: None,
        }))
    }

    /// Names the task that it is about.
    #[must_use]
    pub fn about(mut self, task: TaskId) -> Self {
        self.0.task = Some(task);
        self
    }

    /// Says how far the task is.
    #[must_use]
    pub fn standing_at(mut self, task: &Task) -> Self {
        (self.0.task, self.0.phase, self.0.attempt) = (Some(task.id), task.phase, Some(task.attempt_no));
        self
    }

    /// When to ask again, in the body only: clients act on a header by themselves.
    #[must_use]
    pub fn ask_again_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    /// When to repeat the request, as `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// The limit that was passed.
    #[must_use]
    pub fn over_limit(mut self, bytes: u64) -> Self {
        self.0.limit_bytes = Some(bytes);
        self
    }

    /// What to use instead.
    #[must_use]
    pub fn replaced_by(mut self, successor: &'static str) -> Self {
        self.0.successor = Some(successor);
        self
    }

    /// The cause, for the log only.
    #[must_use]
    pub fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    #[must_use]
    pub fn kind(&self) -> ProblemType {
        self.0.kind
    }

    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// The body, as told in the answer to `request`.
    #[must_use]
    pub fn body(&self, request: RequestId) -> String {
        let entry = self.0.kind.entry();
        let body = ProblemBody {
            task_id: self.0.task,
            status_url: self.0.task.map(|task| format!("/task/{task}/status")),
            kind: format!("/problems/{}", entry.code),
            title: entry.title,
            status: entry.status,
            detail: &self.0.detail,
            phase: self.0.phase,
            attempt: self.0.attempt,
            limit_bytes: self.0.limit_bytes,
            errors: &self.0.errors,
            successor: self.0.successor,
            retry_after_seconds: self.0.retry_after_seconds,
            instance: format!("/requests/{request}"),
        };
        serde_json::to_string(&body).expect("a problem holds only texts and numbers")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.kind.status();
        response.headers_mut().extend(self.0.headers.clone());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response.extensions_mut().insert(self);
        response
    }
}

/// `taskId` comes first and the whole stays small: Feign logs a small error body whole, and the first 200 characters of a large one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemBody<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_url: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'p [Fault],
    #[serde(skip_serializing_if = "Option::is_none")]
    successor: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    instance: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_time_out_is_small_and_begins_with_the_task() {
        let mut problem = Problem::request(RequestProblem::BridgeTimeout, "The task goes on; keep polling statusUrl.")
            .about(TaskId(Uuid::max()))
            .ask_again_after(30);
        (problem.0.phase, problem.0.attempt) = (Some(Phase::Collect), Some(1));
        let body = problem.body(RequestId(Uuid::max()));
        assert!(body.starts_with(r#"{"taskId":"ffffffff-ffff-ffff-ffff-ffffffffffff","statusUrl":"/task/ffff"#), "{body}");
        assert!(body.len() < 400, "{} bytes: {body}", body.len());
    }

    #[test]
    fn the_cause_stays_inside() {
        let problem = Problem::internal(std::io::Error::other("password=hunter2"));
        assert!(!problem.body(RequestId(Uuid::nil())).contains("hunter2"));
        assert!(problem.cause().is_some());
        let failure = Failure::new(FailureCode::Internal, "panicked at src/secret.rs");
        assert!(!Problem::failure(&failure).body(RequestId(Uuid::nil())).contains("secret.rs"));
    }
}
