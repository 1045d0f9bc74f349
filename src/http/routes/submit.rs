//! What both ways to submit share: from a checked request to the 202.

use crate::{
    domain::task::Task,
    engine::{Submission, SubmitError},
    http::{
        Api, Problem, RequestProblem, observe,
        shapes::{TaskStatus, task::status_url},
    },
};
use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{LOCATION, RETRY_AFTER},
    },
    response::{IntoResponse as _, Response},
};

/// How soon a client that polls should come back.
pub const POLL_SECONDS: u64 = 2;
/// The longest client reference.
const MAX_REFERENCE_CHARACTERS: usize = 256;
const MAX_URL_BYTES: usize = 2048;

/// Submits and answers 202, joined or not.
///
/// # Errors
/// The problem for the client; nothing was accepted then.
pub async fn submit(api: &Api, submission: Submission) -> Result<Response, Problem> {
    if !api.engine.supports(submission.kind) {
        return Err(Problem::invalid("invalid", "/kind", "tasks of this kind are switched off here (engine.demo)"));
    }
    if let Some(agenda_id) = &submission.agenda_id {
        observe::note("agendaId", agenda_id.to_string());
    }
    let submitted = api.within_patience(api.engine.submit(submission, None)).await?;
    observe::note("taskId", submitted.task.id.to_string());
    Ok(accepted(&submitted.task, submitted.joined))
}

/// The 202 for a task.
#[must_use]
pub fn accepted(task: &Task, joined: bool) -> Response {
    let location = HeaderValue::try_from(status_url(task.id)).expect("a UUID in a path is a header value");
    let headers = [(LOCATION, location), (RETRY_AFTER, HeaderValue::from(POLL_SECONDS))];
    (StatusCode::ACCEPTED, headers, Json(TaskStatus::submitted(task, joined))).into_response()
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::KeyReused => {
                Self::request(RequestProblem::IdempotencyKeyReused, "This idempotency key came before with another content.")
            }
            SubmitError::Overloaded(why) => Self::overloaded(why),
            SubmitError::Store(error) => error.into(),
        }
    }
}

/// Checks a client reference.
///
/// # Errors
/// When it is too long.
pub fn client_reference(text: String) -> Result<String, String> {
    if text.chars().count() <= MAX_REFERENCE_CHARACTERS {
        Ok(text)
    } else {
        Err(format!("is longer than {MAX_REFERENCE_CHARACTERS} characters"))
    }
}

/// Checks the shape of a callback URL; where it may lead is decided when it is stored and at each delivery.
///
/// # Errors
/// When it is no absolute http or https URL with a host and without credentials.
pub fn callback_url(text: String) -> Result<String, String> {
    if text.len() > MAX_URL_BYTES {
        return Err(format!("is longer than {MAX_URL_BYTES} bytes"));
    }
    let url = reqwest::Url::parse(&text).map_err(|error| format!("is not an absolute URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("has to begin with https:// or http://".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("names no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".to_owned());
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("must not hold spaces or control characters".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_urls_have_a_shape() {
        for good in ["https://example.org/hook?x=1", "http://10.0.0.1:8080/"] {
            assert!(callback_url(good.to_owned()).is_ok(), "{good}");
        }
        let long = format!("https://e.org/{}", "x".repeat(3000));
        for bad in [
            "",
            "hook",
            "/hook",
            "file:///etc/passwd",
            "gopher://x",
            "https://user:pw@e.org/",
            "https://",
            "https://e.org/a b",
            "javascript:alert(1)",
            &long,
        ] {
            assert!(callback_url(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
