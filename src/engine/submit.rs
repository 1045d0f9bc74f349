//! Accepting work, in one transaction: idempotency key → task → outbox row → whatever the door wants to commit with it.
//!
//! Losing the race for the key or for the agenda is an ordinary answer: the task that won is joined. On a crash before the commit nothing was accepted; after
//! it, the outbox row's claim runs out and any relay sends it. Asking again after an error is safe: the key, or the agenda's active task, answers.

use super::{
    core::Core,
    events::FanOut,
    facade::SubmitEffect,
    submission::{Idempotency, Overload, Submission, SubmitError, Submitted},
};
use crate::{
    base::{chain::chain, metrics},
    domain::{
        envelope::Envelope,
        ids::{MessageId, TaskId},
        task::{Kind, Task},
        time::Timestamp,
    },
    store::{self, Tx, callback, idempotency, outbox, task},
};
use futures::FutureExt as _;
use std::sync::Arc;

/// How often an agenda's active task may end between our insert and our look before we give up on it.
const TRIES: usize = 8;

/// What the transaction works from; made outside, because it may run more than once.
struct Request {
    submission: Submission,
    new: task::NewTask,
    message_id: MessageId,
    claim: Option<outbox::RelayClaim>,
    /// Look whether the limit is reached; elsewhere the estimate says that it is not.
    check_limit: Option<u64>,
    /// The disk is so full that what runs needs the rest: nothing new, but who asks for what is there is answered.
    disk_is_full: bool,
    now: Timestamp,
    effect: Option<SubmitEffect>,
}

enum Outcome {
    Accepted { submitted: Box<Submitted>, new: bool, pulled_forward: bool },
    KeyReused,
    Overloaded(Overload),
}

pub(super) async fn submit(core: &Core, submission: Submission, effect: Option<SubmitEffect>) -> Result<Submitted, SubmitError> {
    let now = core.clock.now();
    // A time that has passed means at once, and is then not shown as if it had been waited for.
    let run_at = submission.run_at.map_or(now, |run_at| run_at.max(now));
    let new = task::NewTask {
        id: core.entropy.id(now),
        kind: submission.kind,
        agenda_id: submission.agenda_id.clone(),
        payload: submission.payload.clone(),
        client_reference: submission.client_reference.clone(),
        max_attempts: core.config.max_attempts,
        run_at,
        caller: submission.caller.clone(),
        trace: submission.trace.clone(),
        created_at: now,
    };
    let claim = if run_at == now { core.handover.claim(core, now) } else { None };
    let check_limit = core.pending.may_exceed(core.config.max_pending).then_some(core.config.max_pending);
    let disk_is_full = core.disk.as_ref().is_some_and(|disk| !disk.has_room(&core.clock));
    let (via, callback_url) = (submission.via, submission.callback_url.clone());
    let envelope = Envelope::process_task(core.entropy.id(now), new.id, &new.payload);
    let request = Arc::new(Request { submission, new, message_id: envelope.message_id, claim, check_limit, disk_is_full, now, effect });
    let work = store::work(move |tx| {
        let request = Arc::clone(&request);
        async move { accept(tx, &request).await }.boxed()
    });
    let outcome = match core.db.transaction("submit_task", work).await {
        Err(error) if error.is_disk_full() => {
            tracing::warn!(error = chain(&error), "the disk is full; a submission is refused");
            return Err(SubmitError::Overloaded(Overload::Disk));
        }
        outcome => outcome?,
    };
    match outcome {
        Outcome::Accepted { submitted, new, pulled_forward } => {
            if let Some(url) = callback_url.filter(|_| !new) {
                late_callback(core, submitted.task.id, url).await?;
            }
            if new {
                metrics::TASKS_SUBMITTED.increment(&[submitted.task.kind.as_str(), via.as_str()]);
                core.pending.accepted();
                if claim.is_some() {
                    core.handover.hand(&envelope);
                } else {
                    core.handover.hint();
                }
            } else {
                tell_of_join(&submitted.task, now);
                if pulled_forward {
                    core.tell(&submitted.task);
                    core.handover.hint();
                }
            }
            Ok(*submitted)
        }
        Outcome::KeyReused => Err(SubmitError::KeyReused),
        Outcome::Overloaded(why) => Err(SubmitError::Overloaded(why)),
    }
}

/// The task that was joined may have ended, and whoever told of its end may have looked for callbacks just before this one was there. Before the answer, so that
/// whoever has been answered is told; a caller that is not answered asks again.
async fn late_callback(core: &Core, task: TaskId, url: String) -> store::Result<()> {
    let now = core.clock.now();
    let (fan_out, url): (_, Arc<str>) = (FanOut::new(core.entropy.clone(), &core.telling), url.into());
    let work = store::work(move |tx| {
        let (fan_out, url) = (fan_out.clone(), Arc::clone(&url));
        async move { fan_out.late_callback(tx, task, &url, now).await }.boxed()
    });
    if core.db.transaction("late_callback", work).await? {
        core.deliver.notify_one();
    }
    Ok(())
}

/// Java clients and proxies repeat a POST by themselves; whoever wonders why a caller asks twice finds it here.
fn tell_of_join(task: &Task, now: Timestamp) {
    tracing::info!(
        taskId = %task.id, agendaId = task.agenda_id.as_ref().map(tracing::field::display), caller = task.caller,
        ageMilliseconds = u64::try_from(now.since(task.created_at).as_millis()).unwrap_or(u64::MAX), "a repeated submission joined its task"
    );
}

async fn accept(tx: &mut Tx<'_>, request: &Request) -> store::Result<Outcome> {
    let outcome = decide(tx, request).await?;
    if let Outcome::Accepted { submitted, .. } = &outcome {
        if let Some(url) = &request.submission.callback_url {
            callback::add(tx, submitted.task.id, url, &request.submission.caller, request.now).await?;
        }
        if let Some(effect) = &request.effect {
            effect(tx, submitted).await?;
        }
    }
    Ok(outcome)
}

async fn decide(tx: &mut Tx<'_>, request: &Request) -> store::Result<Outcome> {
    let Request { submission, new, now, .. } = request;
    // The key goes first: two submissions with one key wait for each other here, before either has a task.
    if let Some(key) = &submission.idempotency
        && let Some(bound) = bind_key(tx, key, new.id, *now).await?
    {
        if bound.fingerprint != key.fingerprint {
            return Ok(Outcome::KeyReused);
        }
        if let Some(task) = task::find(tx, bound.task_id).await? {
            return Ok(Outcome::Accepted { submitted: Box::new(Submitted { task, joined: true }), new: false, pulled_forward: false });
        }
        // The task is older than its retention; the key starts anew.
        idempotency::rebind(tx, &key.scope, &key.key, bound.task_id, new.id).await?;
    }
    let mut why = Overload::Queue;
    for _ in 0..TRIES {
        if let Some(agenda_id) = &new.agenda_id
            && new.kind == Kind::Protocol
            && let Some(active) = task::active_of_agenda(tx, agenda_id).await?
        {
            return join(tx, request, active).await;
        }
        if request.disk_is_full {
            why = Overload::Disk;
            break;
        }
        if let Some(limit) = request.check_limit
            && task::pending_reaches(tx, limit).await?
        {
            break;
        }
        if let Some(task) = task::insert(tx, new).await? {
            let envelope = Envelope::process_task(request.message_id, task.id, &task.payload);
            outbox::insert(tx, &envelope, task.run_at, request.claim, *now).await?;
            return Ok(Outcome::Accepted { submitted: Box::new(Submitted { task, joined: false }), new: true, pulled_forward: false });
        }
        // Somebody else's task won the agenda; it is joined, unless it ends before we look.
    }
    // Nothing is accepted, so the key must not stand for anything.
    if let Some(key) = &submission.idempotency {
        idempotency::release(tx, &key.scope, &key.key, new.id).await?;
    }
    Ok(Outcome::Overloaded(why))
}

/// Binds the key to the new task, or answers what it stands for already.
async fn bind_key(tx: &mut Tx<'_>, key: &Idempotency, id: TaskId, now: Timestamp) -> store::Result<Option<idempotency::Bound>> {
    for _ in 0..TRIES {
        if idempotency::bind(tx, &key.scope, &key.key, &key.fingerprint, id, now).await? {
            return Ok(None);
        }
        if let Some(bound) = idempotency::find(tx, &key.scope, &key.key).await? {
            return Ok(Some(bound));
        }
        // It was freed in between.
    }
    Ok(None)
}

async fn join(tx: &mut Tx<'_>, request: &Request, active: Task) -> store::Result<Outcome> {
    if let Some(key) = &request.submission.idempotency {
        idempotency::rebind(tx, &key.scope, &key.key, request.new.id, active.id).await?;
    }
    let pulled = task::pull_forward(tx, active.id, request.new.run_at).await?;
    let pulled_forward = pulled.is_some();
    if pulled_forward {
        outbox::pull_forward(tx, active.id, request.new.run_at).await?;
    }
    let task = pulled.unwrap_or(active);
    Ok(Outcome::Accepted { submitted: Box::new(Submitted { task, joined: true }), new: false, pulled_forward })
}
