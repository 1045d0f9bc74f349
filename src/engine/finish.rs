//! How attempts end. There is **one terminal path**, [`close_tasks`], in the transaction that sets the terminal status: the end of the attempt, the event of a
//! protocol task, the dead letter of a failed one, the deletion of messages nobody needs, the expiry of its idempotency keys. Finish, fail, cancel and the
//! rescuer's dead letter all go through it, alone or together with others.
//!
//! On a crash before the commit the attempt has not ended and the rescuer takes the task; after it, it has.

use super::{
    core::{Core, log_outcome},
    endings::{self, End},
    executor::{Done, Effect},
    guarded_write::{Written, write_end},
    worker::Running,
};
use crate::{
    base::{chain::chain, metrics, spans},
    domain::{
        envelope::Envelope,
        event::{EventDocument, EventType, body},
        failure::{Failure, FailureCode},
        ids::{DeadLetterId, EventId, MessageId, TaskId},
        retry::RetryPolicy,
        task::{AttemptOutcome, Kind, Phase, Status, Task, TaskEvent, transition},
        time::Timestamp,
    },
    store::{self, Tx, attempt, dead_letter, event, idempotency, outbox, task},
};
use futures::FutureExt as _;
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
    pub(super) fn make(core: &Core, now: Timestamp) -> Self {
        Self { event: core.entropy.id(now), dead_letter: core.entropy.id(now) }
    }
}

/// A task that has just been given a terminal status in this transaction.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    pub(super) task: &'a Task,
    pub(super) ids: TerminalIds,
    pub(super) outcome: AttemptOutcome,
    pub(super) documents: &'a [EventDocument],
    pub(super) at: Timestamp,
}

/// The terminal path: everything that goes with the terminal statuses, in as many statements for a hundred tasks as for one.
pub(super) async fn close_tasks(tx: &mut Tx<'_>, closed: &[Closed<'_>]) -> store::Result<()> {
    let Some(last) = closed.iter().map(|closed| closed.at).max() else { return Ok(()) };
    let closings: Vec<_> =
        closed.iter().map(|closed| closing(closed.task, closed.outcome, closed.task.failure.as_ref(), closed.at)).collect();
    attempt::close(tx, &closings).await?;
    let events: Vec<_> = closed.iter().filter_map(event).collect();
    if !events.is_empty() {
        event::insert(tx, &events).await?;
    }
    let letters: Vec<_> = closed.iter().filter_map(dead_letter).collect();
    if !letters.is_empty() {
        dead_letter::insert(tx, &letters).await?;
    }
    let ids: Vec<TaskId> = closed.iter().map(|closed| closed.task.id).collect();
    outbox::delete_unpublished(tx, &ids).await?;
    idempotency::expire(tx, &ids, last + KEYS_KEPT).await
}

fn closing<'a>(task: &Task, outcome: AttemptOutcome, failure: Option<&'a Failure>, at: Timestamp) -> attempt::Closing<'a> {
    let phase = failure.and_then(|failure| failure.phase).or(task.phase);
    attempt::Closing { task_id: task.id, claim_no: task.claim_no, outcome, failure, phase, at }
}

fn event<'a>(closed: &Closed<'a>) -> Option<event::NewEvent<'a>> {
    let Closed { task, ids, documents, at, .. } = *closed;
    let event_type = EventType::of(task.status)?;
    let agenda_id = task.agenda_id.as_ref().filter(|_| task.kind == Kind::Protocol)?;
    let body = body(ids.event, task, documents, at)?;
    Some(event::NewEvent { id: ids.event, event_type, task_id: task.id, agenda_id, body, at })
}

fn dead_letter<'a>(closed: &Closed<'a>) -> Option<dead_letter::NewDeadLetter<'a>> {
    let Closed { task, ids, at, .. } = *closed;
    let failure = task.failure.as_ref().filter(|_| task.status == Status::Failed)?;
    Some(dead_letter::NewDeadLetter { id: ids.dead_letter, task, failure, at })
}

/// What is done in this process once a terminal transaction has committed.
pub(super) fn announce_end(core: &Core, task: &Task) {
    let outcome = match task.status {
        Status::Completed => "completed",
        Status::Failed => "failed",
        _ => "cancelled",
    };
    metrics::TASKS_FINISHED.increment(&[task.kind.as_str(), outcome]);
    log_outcome(task, task.failure.as_ref());
    core.tell(task);
    core.feed.task_ended();
}

/// The end of this attempt, as it is to be written.
fn end(running: &Running<'_>, status: Status, failure: Option<Failure>, outcome: AttemptOutcome) -> End {
    let at = running.core.clock.now();
    let (id, token) = (running.task.id, running.lease.token);
    let ending = task::Ending { id, token, status, failure, reached: running.lease.reached(), at };
    End { ending, outcome, ids: TerminalIds::make(running.core, at) }
}

/// Completes the task together with the executor's effect.
pub(super) async fn complete(running: &Running<'_>, done: Done) -> Settled {
    debug_assert_eq!(transition(Status::InProgress, TaskEvent::Complete), Ok(Status::Completed));
    let end = end(running, Status::Completed, None, AttemptOutcome::Completed);
    let write = || match &done.effect {
        None => endings::write(running.core, end.clone()).boxed(),
        Some(effect) => complete_with(running.core, end.clone(), Arc::clone(effect)).boxed(),
    };
    match write_end(running, AttemptOutcome::Completed, write).await {
        Written::Done(task) => {
            announce_end(running.core, &task);
            Settled::Ended(AttemptOutcome::Completed)
        }
        Written::Refused(error) => {
            tracing::error!(error = chain(&error), "the task's result cannot be stored");
            Box::pin(fail(running, Failure::new(FailureCode::Internal, "The result could not be stored."), true)).await
        }
        Written::Lost => Settled::Lost,
        Written::Stopped => Settled::Stopped,
    }
}

/// What an executor brings may fail by itself and may lock what others want, so it shares its transaction with no other end.
async fn complete_with(core: &Core, end: End, effect: Effect) -> store::Result<Option<Task>> {
    let end = Arc::new(end);
    let work = store::work(move |tx| {
        let (end, effect) = (Arc::clone(&end), Arc::clone(&effect));
        async move {
            // The guarded write goes first: without the lease the effect is not even tried.
            let Some(mut task) = task::end(tx, std::slice::from_ref(&end.ending)).await?.pop() else { return Ok(None) };
            let effected = effect(tx).await?;
            if let Some(protocol_id) = effected.protocol_id {
                task::set_protocol(tx, task.id, protocol_id).await?;
                task.protocol_id = Some(protocol_id);
            }
            let (ids, outcome, at, documents) = (end.ids, end.outcome, end.ending.at, effected.documents.as_slice());
            close_tasks(tx, &[Closed { task: &task, ids, outcome, documents, at }]).await?;
            Ok(Some(task))
        }
        .boxed()
    });
    core.db.transaction("finish_task", work).await
}

/// Ends a failed attempt: another try if the failure and the count allow it, else the task has failed for good.
pub(super) async fn fail(running: &Running<'_>, failure: Failure, executor_would_retry: bool) -> Settled {
    let failure = match (failure.phase, running.lease.reached()) {
        (None, Some((phase, _))) => failure.in_phase(phase),
        _ => failure,
    };
    spans::fail(failure.code.as_str());
    let task = running.task;
    if executor_would_retry && RetryPolicy::tries_again(failure.retryable, task.attempt_no, task.max_attempts) {
        retry(running, failure).await
    } else {
        fail_for_good(running, failure).await
    }
}

async fn fail_for_good(running: &Running<'_>, failure: Failure) -> Settled {
    debug_assert_eq!(transition(Status::InProgress, TaskEvent::Fail), Ok(Status::Failed));
    let end = end(running, Status::Failed, Some(failure), AttemptOutcome::Failed);
    let write = || endings::write(running.core, end.clone());
    match write_end(running, AttemptOutcome::Failed, write).await {
        Written::Done(task) => {
            announce_end(running.core, &task);
            Settled::Ended(AttemptOutcome::Failed)
        }
        Written::Refused(error) => {
            // Nothing more can be written; the lease runs out and the rescuer tries its own end.
            tracing::error!(error = chain(&error), "the task's failure cannot be stored");
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
                maxAttempts = task.max_attempts, failure = failure.code.as_str(), phase = failure.phase.map(Phase::as_str),
                reason = failure.message, nextAttemptAt = %task.next_attempt_at, "the attempt failed and will be tried again"
            );
            core.tell(&task);
            core.handover.hint();
            Settled::Ended(AttemptOutcome::Retried)
        }
        Written::Refused(error) => {
            tracing::error!(error = chain(&error), "the attempt's failure cannot be stored");
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
            tracing::info!("the attempt is given back");
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
    attempt::close(tx, &[closing(task, outcome, failure, now)]).await?;
    let envelope = Envelope::process_task(message_id, task.id, &task.payload);
    outbox::insert(tx, &envelope, task.next_attempt_at, None, now).await
}
