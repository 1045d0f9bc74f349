//! What to do about each problem, for whoever calls and for whoever operates the service: the two texts of its page.

use super::{ProblemType, RequestProblem};
use crate::domain::failure::FailureCode;

/// Two readers, two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    pub caller: &'static str,
    pub operator: &'static str,
}

/// The advice for a type.
#[must_use]
pub const fn advice(kind: ProblemType) -> Advice {
    match kind {
        ProblemType::Request(problem) => Advice { caller: kind.entry().what_to_do, operator: about_requests(problem) },
        ProblemType::Failure(code) => {
            let (caller, operator) = about_failures(code);
            Advice { caller, operator }
        }
    }
}

const fn about_requests(problem: RequestProblem) -> &'static str {
    match problem {
        RequestProblem::InvalidRequest => {
            "Nothing is wrong with the service. Many of them from one caller after a release: its client was built against another version of the API, see /docs."
        }
        RequestProblem::Unauthorized => {
            "Look in the log for the request's id: it names the address. For a client that cannot send a key, set \"networks\" and \"user_agent\" of its entry in \"[[callers]]\"."
        }
        RequestProblem::Forbidden => {
            "Give the caller the role in \"[[callers]]\". Without callers the service answers to localhost and \"http.public_url\" only, so that no web page can reach it through a browser: set that address if people use another name."
        }
        RequestProblem::NotFound
        | RequestProblem::MethodNotAllowed
        | RequestProblem::UnsupportedMediaType
        | RequestProblem::RangeNotSatisfiable => "Nothing is wrong with the service.",
        RequestProblem::RequestTimeout => {
            "Many of them: look for a proxy that holds back request bodies, or for a client that opens connections it does not use."
        }
        RequestProblem::NotFinished => {
            "Nothing is wrong. Tasks that stay unfinished for long show in \"protocol_bridge_task_oldest_runnable_age_seconds\"."
        }
        RequestProblem::AlreadyFinished => "Nothing is wrong.",
        RequestProblem::AlreadyReplayed => "Two people replayed the same dead letter; the audit log says who.",
        RequestProblem::AgendaBusy => {
            "Look at the task that is active. If it hangs, its lease or its attempt's deadline ends it; cancelling it works at once."
        }
        RequestProblem::TargetRefused => {
            "Whoever may name an address could reach into your network through this service, so private ones are refused. If there are no strangers in it, set \"events.allow_private_targets\". On PostgreSQL webhooks need \"auth.secret_key\"."
        }
        RequestProblem::LegacyGone => {
            "\"legacy.stage\" is M3, or M2 and the caller has not proved its name: give it an entry in \"[[callers]]\" with a key, or with its network and User-Agent."
        }
        RequestProblem::LegacyBrownout => {
            "This is what the configured brownouts ask for. Who was turned away is in the log and in the ledger: speak to them."
        }
        RequestProblem::PayloadTooLarge => {
            "Raise \"http.body_limit\" if such bodies are meant to be sent; a proxy in front may have a smaller limit of its own."
        }
        RequestProblem::UriTooLong => "Nothing is wrong with the service; the limit is fixed at 8 KiB.",
        RequestProblem::IdempotencyKeyReused => {
            "A client builds its keys from too little: an agenda's id alone is not enough when it is submitted with changing content."
        }
        RequestProblem::TooManyRequests => "Speak to whoever runs that client; if it is right to ask that often, raise its limit.",
        RequestProblem::HeadersTooLarge => "Look for a proxy that adds headers, or for cookies of another service on the same host name.",
        RequestProblem::Draining => {
            "It is part of a restart. If callers notice it often: let the load balancer take \"/readyz\" seriously, and raise \"shutdown.announce\" and \"shutdown.waiter_grace\"."
        }
        RequestProblem::Overloaded => {
            "Look at \"protocol_bridge_tasks\" (waiting ones against \"engine.max_pending\") and \"protocol_bridge_disk_free_bytes\". More replicas, or a larger \"engine.max_running\", work off more."
        }
        RequestProblem::Unavailable => {
            "Look at the database and the way to it: \"protocol_bridge_db_pool_in_use\", \"/readyz?verbose\", and the log under the request's id. What was accepted goes on when it is back."
        }
        RequestProblem::BridgeTimeout => {
            "One now and then is in the nature of v1. Many: tasks take longer than \"legacy.timeout\" (look at \"protocol_bridge_task_run_seconds\"), wait for workers (\"protocol_bridge_task_pickup_seconds\"), or \"legacy.max_waiters\" is reached (\"protocol_bridge_legacy_waiters\")."
        }
    }
}

/// For the caller, for the operator.
const fn about_failures(code: FailureCode) -> (&'static str, &'static str) {
    match code {
        FailureCode::AgendaNotFound => (
            "Check the id. If the agenda has only just been made, call again when the agenda service knows it: every call looks anew.",
            "If all agendas are unknown, \"agenda.source\" leads to the wrong place.",
        ),
        FailureCode::AgendaNotReady => (
            "Have the reports signed of the questions that errors names, then call again. \"GET /api/agendas/{id}/check\" shows what is missing without making a task.",
            "Nothing is wrong. Where callers ask before their own commit is visible, raise \"agenda.ready_grace\".",
        ),
        FailureCode::AgendaInvalid => (
            "Show errors to the secretary: each says what contradicts what, and where. Correct the agenda, then call again. \"GET /api/agendas/{id}/check\" tries a correction without making a task.",
            "Nothing is wrong, unless every agenda is refused: then the source sends another format than it used to.",
        ),
        FailureCode::AgendaKeepsChanging => (
            "Call again when nobody edits the agenda any more.",
            "If agendas are at rest: the source answers a new revision or ETag each time, although nothing has changed.",
        ),
        FailureCode::AgendaTooLarge => (
            "Split the agenda, or ask the operator for the limit that detail names.",
            "Raise the limit that detail names, such as \"generator.max_questions\".",
        ),
        FailureCode::AgendaSourceUnavailable => (
            "It was asked several times already. Call again later.",
            "Look at the agenda service and the way to it; \"agenda.timeout\" and \"agenda.max_per_host\" say how patient we are. Then replay the dead letter.",
        ),
        FailureCode::ReportUnavailable => (
            "It was asked for several times already. Check that the report that detail names can be fetched, then call again.",
            "Look at the service that holds it. A host that is not the agenda service's own must be listed in \"agenda.allowed_hosts\". Then replay the dead letter.",
        ),
        FailureCode::RenderFailed => (
            "Tell the operator the instance of this answer. Calling again does not help.",
            "The log names the cause under the task's id. With a template of your own: correct it. With the built-in one it is a fault of ours: keep the agenda, and report it.",
        ),
        FailureCode::RenderLimit => (
            "Tell the operator the instance of this answer; the document is unusually large.",
            "Look at the task's steps to see which part it was. Raise the renderer's limits in \"[generator]\", or have the agenda split.",
        ),
        FailureCode::StorageUnavailable => (
            "It was tried several times already. Call again later: finished steps are not repeated.",
            "Look at the document store, its free space and rights (\"[documents]\"). Then replay the dead letter: only the last step is repeated.",
        ),
        FailureCode::DeadlineExceeded => (
            "Tell the operator the instance of this answer. A new call goes on from the last finished step.",
            "Look at the task's steps to see where the time went: a slow agenda service, or a document of thousands of pages. Raise \"engine.attempt_deadline\", and \"legacy.timeout\" with it.",
        ),
        FailureCode::WorkerLost => (
            "Tell the operator the instance of this answer. A new call goes on from the last finished step.",
            "Processes died at this task, several times: look for crashes and for the kernel's out-of-memory killer. Replay the dead letter once the cause is gone.",
        ),
        FailureCode::Cancelled => (
            "Call again, or submit a new task, if the protocol is still wanted.",
            "Nothing is wrong. Who cancelled it is in the audit log.",
        ),
        FailureCode::Internal => (
            "Tell the operator the instance of this answer. Calling again is safe.",
            "Look in the log for the request's or the task's id: the cause is there. It is a fault of ours: report it.",
        ),
    }
}
