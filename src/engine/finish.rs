//! How attempts end. There is **one terminal path**, [`close_task`], in the transaction that sets the terminal status: the end of the attempt, the event of a
//! protocol task, the dead letter of a failed one, the deletion of messages nobody needs, the expiry of its idempotency keys. Finish, fail, cancel and the
//! rescuer's dead letter all go through it.
//!
//! On a crash before the commit the attempt has not ended and the rescuer takes the task; after it, it has.

use super::{
    core::log_outcome,
    executor::{Done, Effected},
    guarded_write::{Written, write_end},
    worker::Running,
};
use crate::{
    base::metrics,
    domain::{
        envelope::Envelope,
        event::{EventType, cloud_event},
        failure::{Failure, FailureCode},
        ids::{DeadLetterId, EventId, MessageId},
        retry::RetryPolicy,
        task::{AttemptOutcome, Kind, Status, Task, TaskEvent, transition},
        time::Timestamp,
    },
    store::{self, Tx, attempt, dead_letter, event, idempotency, outbox, task},
};
use futures::FutureExt as _;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// How long an idempotency key answers after its task's end.
const KEYS_KEPT: Duration = Duration::from_hours(7 * 24);

/// What came of writing an attempt's end.
#[derive(Debug)]
pub(super) enum Settled {
    Ended(AttemptOutcome),
    /// The task is not ours any more, or may not be: nothing was written.
    Lost,
    /// The process stops now.
    Stopped,
}

/// The ids that a terminal transaction may need, made beforehand.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalIds {
    pub(super) event: EventId,
    pub(super) dead_letter: DeadLetterId,
}

impl TerminalIds {
    pub(super) fn make(core: &super::core::Core, now: Timestamp) -> Self {
        Self { event: core.entropy.id(now), dead_letter: core.entropy.id(now) }
    }
}

/// The terminal path: everything that goes with the terminal status that `task` has just been given in this transaction.
pub(super) async fn close_task(
    tx: &mut Tx<'_>,
    task: &Task,
    ids: TerminalIds,
    outcome: AttemptOutcome,
    documents: Option<&Value>,
    now: Timestamp,
) -> store::Result<()> {
    let failure = task.failure.as_ref();
    let phase = failure.and_then(|failure| failure.phase).or(task.phase);
    attempt::close(tx, task.id, task.claim_no, attempt::Closing { outcome, failure, phase }, now).await?;
    let event_type = match task.status {
        Status::Completed => Some(EventType::Completed),
        Status::Failed => Some(EventType::Failed),
        Status::Cancelled => Some(EventType::Cancelled),
        Status::Pending | Status::InProgress => None,
    };
    if task.kind == Kind::Protocol
        && let (Some(event_type), Some(agenda_id)) = (event_type, &task.agenda_id)
    {
        let body = cloud_event(ids.event, event_type, task, now, documents, failure);
        event::insert(tx, event::NewEvent { id: ids.event, event_type, task_id: task.id, agenda_id, body: &body }, now).await?;
    }
    if task.status == Status::Failed
        && let Some(failure) = failure
    {
        dead_letter::insert(tx, ids.dead_letter, task, failure, now).await?;
    }
    outbox::delete_unpublished(tx, task.id).await?;
    idempotency::expire(tx, task.id, now + KEYS_KEPT).await
}

/// What is done in this process once a terminal transaction has committed.
pub(super) fn announce_end(core: &super::core::Core, task: &Task) {
    let outcome = match task.status {
        Status::Completed => "completed",
        Status::Failed => "failed",
        _ => "cancelled",
    };
    metrics::TASKS_FINISHED.increment(&[task.kind.as_str(), outcome]);
    log_outcome(task, task.failure.as_ref());
    core.tell(task);
}

/// Completes the task together with the executor's effect.
pub(super) async fn complete(running: &Running<'_>, done: Done) -> Settled {
    let (id, token) = (running.task.id, running.lease.token);
    debug_assert_eq!(transition(Status::InProgress, TaskEvent::Complete), Ok(Status::Completed));
    let ending = Arc::new(task::Ending { status: Status::Completed, failure: None, reached: running.lease.reached() });
    let now = running.core.clock.now();
    let ids = TerminalIds::make(running.core, now);
    let write = || {
        let (ending, effect) = (Arc::clone(&ending), done.effect.clone());
        running.core.db.transaction("finish_task", move |tx: &mut Tx<'_>| {
            let (ending, effect) = (Arc::clone(&ending), effect.clone());
            async move {
                // The guarded write goes first: without the lease the effect is not even tried.
                let Some(mut task) = task::end(tx, id, token, &ending, now).await? else { return Ok(None) };
                let effected = match effect {
                    Some(effect) => effect(tx).await?,
                    None => Effected::default(),
                };
                if let Some(protocol_id) = effected.protocol_id {
                    task::set_protocol(tx, id, protocol_id).await?;
                    task.protocol_id = Some(protocol_id);
                }
                close_task(tx, &task, ids, AttemptOutcome::Completed, effected.documents.as_ref(), now).await?;
                Ok(Some(task))
            }
            .boxed()
        })
    };
    match write_end(running, AttemptOutcome::Completed, write).await {
        Written::Done(task) => {
            announce_end(running.core, &task);
            Settled::Ended(AttemptOutcome::Completed)
        }
        Written::Refused(error) => {
            tracing::error!(taskId = %id, %error, cause = ?error, "the task's result cannot be stored");
            Box::pin(fail(running, Failure::new(FailureCode::Internal, "The result could not be stored."), true)).await
        }
        Written::Lost => Settled::Lost,
        Written::Stopped => Settled::Stopped,
    }
}

/// Ends a failed attempt: another try if the failure and the count allow it, else the task has failed for good.
pub(super) async fn fail(running: &Running<'_>, failure: Failure, executor_would_retry: bool) -> Settled {
    let failure = match (failure.phase, running.lease.reached()) {
        (None, Some((phase, _))) => failure.in_phase(phase),
        _ => failure,
    };
    let task = running.task;
    if executor_would_retry && RetryPolicy::tries_again(failure.retryable, task.attempt_no, task.max_attempts) {
        retry(running, failure).await
    } else {
        fail_for_good(running, failure).await
    }
}

async fn fail_for_good(running: &Running<'_>, failure: Failure) -> Settled {
    let (id, token) = (running.task.id, running.lease.token);
    debug_assert_eq!(transition(Status::InProgress, TaskEvent::Fail), Ok(Status::Failed));
    let ending = Arc::new(task::Ending { status: Status::Failed, failure: Some(failure), reached: running.lease.reached() });
    let now = running.core.clock.now();
    let ids = TerminalIds::make(running.core, now);
    let write = || {
        let ending = Arc::clone(&ending);
        running.core.db.transaction("finish_task", move |tx: &mut Tx<'_>| {
            let ending = Arc::clone(&ending);
            async move {
                let Some(task) = task::end(tx, id, token, &ending, now).await? else { return Ok(None) };
                close_task(tx, &task, ids, AttemptOutcome::Failed, None, now).await?;
                Ok(Some(task))
            }
            .boxed()
        })
    };
    match write_end(running, AttemptOutcome::Failed, write).await {
        Written::Done(task) => {
            announce_end(running.core, &task);
            Settled::Ended(AttemptOutcome::Failed)
        }
        Written::Refused(error) => {
            // Nothing more can be written; the lease runs out and the rescuer tries its own end.
            tracing::error!(taskId = %id, %error, cause = ?error, "the task's failure cannot be stored");
            Settled::Lost
        }
        Written::Lost => Settled::Lost,
        Written::Stopped => Settled::Stopped,
    }
}

async fn retry(running: &Running<'_>, failure: Failure) -> Settled {
    let core = running.core;
    let now = core.clock.now();
    let delay = core.retry_policy().delay(running.task.attempt_no, core.entropy.fraction());
    let put_back = task::PutBack {
        give_back_attempt: false,
        next_attempt_at: now + delay,
        failure: Some(failure.clone()),
        reached: running.lease.reached(),
    };
    match put_back_attempt(running, "retry_task", put_back, AttemptOutcome::Retried, now).await {
        Written::Done(task) => {
            metrics::TASK_RETRIES.increment(&[task.kind.as_str()]);
            tracing::warn!(
                taskId = %task.id, agendaId = task.agenda_id.as_ref().map(tracing::field::display), claim = task.claim_no,
                attempt = task.attempt_no, max_attempts = task.max_attempts, failure = failure.code.as_str(), reason = failure.message,
                next_attempt_at = %task.next_attempt_at, "the attempt failed and will be tried again"
            );
            core.tell(&task);
            core.handover.hint();
            Settled::Ended(AttemptOutcome::Retried)
        }
        Written::Refused(error) => {
            tracing::error!(taskId = %running.task.id, %error, cause = ?error, "the attempt's failure cannot be stored");
            Settled::Lost
        }
        Written::Lost => Settled::Lost,
        Written::Stopped => Settled::Stopped,
    }
}

/// Gives an attempt back uncounted: the process drains, or the executor never started.
pub(super) async fn release(running: &Running<'_>) -> Settled {
    let now = running.core.clock.now();
    let put_back = task::PutBack { give_back_attempt: true, next_attempt_at: now, failure: None, reached: running.lease.reached() };
    match put_back_attempt(running, "release_task", put_back, AttemptOutcome::Released, now).await {
        Written::Done(task) => {
            tracing::info!(taskId = %task.id, claim = task.claim_no, "the attempt is given back");
            running.core.tell(&task);
            running.core.handover.hint();
            Settled::Ended(AttemptOutcome::Released)
        }
        Written::Refused(_) | Written::Lost => Settled::Lost,
        Written::Stopped => Settled::Stopped,
    }
}

async fn put_back_attempt(
    running: &Running<'_>,
    name: &'static str,
    put_back: task::PutBack,
    outcome: AttemptOutcome,
    now: Timestamp,
) -> Written {
    let (id, token) = (running.task.id, running.lease.token);
    let message_id: MessageId = running.core.entropy.id(now);
    let put_back = Arc::new(put_back);
    let write = || {
        let put_back = Arc::clone(&put_back);
        running.core.db.transaction(name, move |tx: &mut Tx<'_>| {
            let put_back = Arc::clone(&put_back);
            async move {
                let Some(task) = task::put_back(tx, id, token, &put_back).await? else { return Ok(None) };
                queue_again(tx, &task, message_id, outcome, put_back.failure.as_ref(), now).await?;
                Ok(Some(task))
            }
            .boxed()
        })
    };
    write_end(running, outcome, write).await
}

/// What goes with a return to PENDING: the end of the attempt, and a message with a new id for the next one.
pub(super) async fn queue_again(
    tx: &mut Tx<'_>,
    task: &Task,
    message_id: MessageId,
    outcome: AttemptOutcome,
    failure: Option<&Failure>,
    now: Timestamp,
) -> store::Result<()> {
    let phase = failure.and_then(|failure| failure.phase).or(task.phase);
    attempt::close(tx, task.id, task.claim_no, attempt::Closing { outcome, failure, phase }, now).await?;
    let envelope = Envelope::process_task(message_id, task.id, &task.payload);
    outbox::insert(tx, &envelope, task.next_attempt_at, None, now).await
}
