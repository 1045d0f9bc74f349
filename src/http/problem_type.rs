//! The problem types: one table from which answers, their pages at `/problems/{code}` and the OpenAPI document are made.

use crate::domain::failure::FailureCode;
use axum::http::StatusCode;

/// What kind of problem an answer is: a request that could not be served, or a task that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemType {
    Request(RequestProblem),
    Failure(FailureCode),
}

/// Why a request could not be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestProblem {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    NotFinished,
    AlreadyFinished,
    AlreadyReplayed,
    AgendaBusy,
    LegacyGone,
    LegacyBrownout,
    PayloadTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    RangeNotSatisfiable,
    IdempotencyKeyReused,
    TargetRefused,
    TooManyRequests,
    HeadersTooLarge,
    Draining,
    Overloaded,
    Unavailable,
    BridgeTimeout,
}

/// A type as people read about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub meaning: &'static str,
    pub what_to_do: &'static str,
}

impl RequestProblem {
    pub const ALL: [Self; 24] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::NotFinished,
        Self::AlreadyFinished,
        Self::AlreadyReplayed,
        Self::AgendaBusy,
        Self::LegacyGone,
        Self::LegacyBrownout,
        Self::PayloadTooLarge,
        Self::UriTooLong,
        Self::UnsupportedMediaType,
        Self::RangeNotSatisfiable,
        Self::IdempotencyKeyReused,
        Self::TargetRefused,
        Self::TooManyRequests,
        Self::HeadersTooLarge,
        Self::Draining,
        Self::Overloaded,
        Self::Unavailable,
        Self::BridgeTimeout,
    ];

    const fn entry(self) -> Entry {
        let (code, status, title, meaning, what_to_do) = match self {
            Self::InvalidRequest => (
                "invalid-request",
                400,
                "The request is not valid",
                "Something in the path, the query, a header or the body is not what the API takes. Nothing was done.",
                "Correct what errors names: pointer says where, detail what is wrong.",
            ),
            Self::Unauthorized => (
                "unauthorized",
                401,
                "A key is needed",
                "This call needs a key, and there was none or it is not known.",
                "Send a known key as \"Authorization: Bearer KEY\". An operator makes one with \"protocol-bridge keys new\".",
            ),
            Self::Forbidden => (
                "forbidden",
                403,
                "Not for this caller",
                "The caller is known but lacks the role for this call, or the Host or Origin of the request is not one this service answers to.",
                "Ask the operator for the role, or call the service by the address it is configured with (http.public_url).",
            ),
            Self::NotFound => (
                "not-found",
                404,
                "Not found",
                "There is nothing at this address: it was never there, or it is older than the retention time (90 days for tasks).",
                "Check the address. GET /task?agendaId=… lists an agenda's tasks, GET /protocol?agendaId=… its protocols.",
            ),
            Self::MethodNotAllowed => (
                "method-not-allowed",
                405,
                "Not with this method",
                "The address exists, but not for this HTTP method.",
                "Use one of the methods that the Allow header names.",
            ),
            Self::RequestTimeout => (
                "request-timeout",
                408,
                "The request did not arrive in time",
                "The head or the body of the request was not sent within the time allowed for it. Nothing was done.",
                "Send the request again, faster; look for a slow or broken network between client and service.",
            ),
            Self::NotFinished => (
                "not-finished",
                409,
                "The task goes on",
                "There is no result yet: the task waits or runs.",
                "Poll statusUrl until status is COMPLETED or FAILED; \"Prefer: wait=30\" makes the answer come as soon as something changes.",
            ),
            Self::AlreadyFinished => (
                "already-finished",
                409,
                "Too late to cancel",
                "The task had completed or failed before the cancel came.",
                "Look at its status; a protocol that was made stays.",
            ),
            Self::AlreadyReplayed => (
                "already-replayed",
                409,
                "Already replayed",
                "This dead letter was put back into the queue before.",
                "Look at its task's status; if it failed again, the task has a newer dead letter.",
            ),
            Self::AgendaBusy => (
                "agenda-busy",
                409,
                "Another task of the agenda is active",
                "An agenda has at most one active task, and taskId names the one it has.",
                "Wait until that task has ended or cancel it, then replay again if that is still wanted.",
            ),
            Self::LegacyGone => (
                "legacy-gone",
                410,
                "This call is gone",
                "The synchronous v1 call is closed, to all or to callers that do not prove their name.",
                "Use POST /task and GET /task/{id}/status; see /docs/migration.",
            ),
            Self::LegacyBrownout => (
                "legacy-brownout",
                410,
                "This call is closed for a while",
                "The synchronous v1 call is closed for an announced time, to find who still uses it.",
                "Move to POST /task now; see /docs/migration. The call opens again when the announced time is over.",
            ),
            Self::PayloadTooLarge => (
                "payload-too-large",
                413,
                "The body is too large",
                "The body is over the configured limit, which limitBytes names.",
                "Send less, or have the operator raise http.body_limit.",
            ),
            Self::UriTooLong => {
                ("uri-too-long", 414, "The address is too long", "Path and query together are over 8 KiB.", "Shorten the query.")
            }
            Self::UnsupportedMediaType => (
                "unsupported-media-type",
                415,
                "Not a media type that is taken here",
                "The body has to be JSON in UTF-8.",
                "Send \"Content-Type: application/json\".",
            ),
            Self::RangeNotSatisfiable => (
                "range-not-satisfiable",
                416,
                "No such part of the document",
                "The Range header asks for bytes that the document does not have.",
                "Content-Range names the document's size; ask for a part of that, or without Range.",
            ),
            Self::IdempotencyKeyReused => (
                "idempotency-key-reused",
                422,
                "The idempotency key was used for something else",
                "The same key came before with another content; its task is not this request's.",
                "Use a fresh key for a new request, and the same content when repeating an old one.",
            ),
            Self::TargetRefused => (
                "target-refused",
                422,
                "That address is told nothing",
                "A webhook's address is one that events are not sent to: not https, a private, link-local or reserved address, or a name that leads to one. Or the service has no key to keep webhooks' secrets with.",
                "Give a public https address. In a closed network the operator can allow private ones (events.allow_private_targets).",
            ),
            Self::TooManyRequests => {
                ("too-many-requests", 429, "Too many requests", "The caller is over its rate limit.", "Wait as long as Retry-After says.")
            }
            Self::HeadersTooLarge => (
                "headers-too-large",
                431,
                "The headers are too large",
                "There are more than 100 header fields, or they are over 32 KiB together.",
                "Send fewer or shorter headers; cookies are often the reason.",
            ),
            Self::Draining => (
                "draining",
                503,
                "This instance is about to stop",
                "The task goes on, on another instance or after the restart.",
                "Repeat the call: it joins the same task. Or poll statusUrl.",
            ),
            Self::Overloaded => (
                "overloaded",
                503,
                "Too much is waiting",
                "The service takes no new tasks because too many wait already, or its disk is full. Nothing was accepted.",
                "Repeat after Retry-After; that is safe.",
            ),
            Self::Unavailable => (
                "unavailable",
                503,
                "The database does not answer",
                "The service cannot reach its database. What was accepted is not lost.",
                "Repeat after Retry-After; that is safe.",
            ),
            Self::BridgeTimeout => (
                "bridge-timeout",
                504,
                "Still generating",
                "The time for which v1 holds a call is over, or too many calls are held. The task goes on.",
                "Poll statusUrl; or call v1 again, which joins the same task or gets its finished protocol.",
            ),
        };
        Entry { code, status, title, meaning, what_to_do }
    }
}

impl ProblemType {
    /// Every type there is.
    pub fn all() -> impl Iterator<Item = Self> {
        RequestProblem::ALL.into_iter().map(Self::Request).chain(FailureCode::ALL.into_iter().map(Self::Failure))
    }

    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::all().find(|kind| kind.entry().code == code)
    }

    #[must_use]
    pub const fn entry(self) -> Entry {
        match self {
            Self::Request(problem) => problem.entry(),
            Self::Failure(code) => {
                let entry = code.entry();
                Entry {
                    code: entry.code,
                    status: entry.http_status,
                    title: entry.title,
                    meaning: meaning(code),
                    what_to_do: entry.what_to_do,
                }
            }
        }
    }

    #[must_use]
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.entry().status).expect("the table holds statuses from 400 to 504")
    }
}

/// What a failure code means, at more length than its title.
const fn meaning(code: FailureCode) -> &'static str {
    match code {
        FailureCode::AgendaNotFound => "The task failed because the agenda source knows no agenda with this id.",
        FailureCode::AgendaNotReady => {
            "The task failed because a question of the agenda is neither REPORT_SIGNED nor PROTECTED. It was looked at again for a few seconds first."
        }
        FailureCode::AgendaInvalid => {
            "The task failed because the agenda contradicts itself or cannot be read; errors lists all faults at once."
        }
        FailureCode::AgendaKeepsChanging => "The agenda was edited in each of three rounds of collecting it.",
        FailureCode::AgendaTooLarge => "The agenda is over a configured limit.",
        FailureCode::AgendaSourceUnavailable => {
            "The agenda source timed out, refused or answered with an error, and went on doing so when asked again."
        }
        FailureCode::ReportUnavailable => "The report of a question could not be fetched.",
        FailureCode::RenderFailed => "The template or the content of the document does not typeset.",
        FailureCode::RenderLimit => "Typesetting the document ran over its limit of time or memory and was stopped.",
        FailureCode::StorageUnavailable => "The finished documents could not be stored.",
        FailureCode::DeadlineExceeded => "An attempt ran over its deadline and was stopped; so did all others.",
        FailureCode::WorkerLost => "The process that worked on the task vanished, and so did its successors.",
        FailureCode::Cancelled => "The task was cancelled before it completed.",
        FailureCode::Internal => "Something went wrong that has no name of its own.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_one_type() {
        let codes: Vec<_> = ProblemType::all().map(|kind| kind.entry().code).collect();
        assert_eq!(codes.iter().collect::<HashSet<_>>().len(), codes.len());
        assert!(codes.iter().all(|code| code.bytes().all(|c| c.is_ascii_lowercase() || c == b'-')));
        assert_eq!(ProblemType::of_code("internal"), Some(ProblemType::Failure(FailureCode::Internal)));
        assert_eq!(ProblemType::of_code("teapot"), None);
    }
}
