//! The worker: runs an executor under a lease, from the claim to the write that ends the attempt.
//!
//! Whatever comes first ends the run: the executor's decision, a lost lease, a cancel, the deadline, a drain whose grace is over, the hard stop. The executor's
//! future is dropped then; what it may have left running holds a token that is cancelled. On a crash the lease runs out and the rescuer takes the task.

use super::{
    claim::Claimed,
    core::Core,
    executor::{Decision, Run},
    finish::{self, Settled},
    leases::{Held, Lease, StopReason},
};
use crate::{
    base::{
        metrics,
        spans::{self, Span, SpanKind},
    },
    domain::{
        failure::{Failure, FailureCode},
        task::{AttemptOutcome, Task},
        trace::TraceContext,
    },
};
use futures::FutureExt as _;
use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

/// One attempt as the parts that end it see it.
pub(super) struct Running<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) task: &'a Task,
    pub(super) lease: &'a Lease,
}

/// Runs one attempt and writes its end; in the log and in its submitter's trace under the task's names. The permit is for the work: while the end is being
/// written, the next task may be claimed, and ends that wait for the same commit share it.
pub(super) async fn run(core: &Arc<Core>, claimed: Claimed, held: Held, permit: OwnedSemaphorePermit) {
    let task = &claimed.task;
    // At the highest level, so that no filter leaves a warning without what it is about.
    let log = tracing::error_span!(
        "attempt",
        taskId = %task.id,
        agendaId = task.agenda_id.as_ref().map(tracing::field::display),
        caller = task.caller,
        claim = task.claim_no,
        attempt = task.attempt_no,
        traceId = task.trace.as_ref().map(TraceContext::trace_id),
    );
    let span = Span::below(task.trace.as_ref(), format!("task {}", task.kind), SpanKind::Consumer);
    span.note("taskId", task.id.to_string());
    if let Some(agenda_id) = &task.agenda_id {
        span.note("agendaId", agenda_id.to_string());
    }
    span.note("caller", task.caller.clone());
    span.note("claim", i64::from(task.claim_no));
    span.note("attempt", i64::from(task.attempt_no));
    span.around(run_within(core, claimed, held, permit)).instrument(log).await;
}

async fn run_within(core: &Arc<Core>, claimed: Claimed, held: Held, permit: OwnedSemaphorePermit) {
    let Claimed { task, at, .. } = claimed;
    let running = Running { core, task: &task, lease: &held.lease };
    let started = core.clock.monotonic();
    let ended = if core.shutdown.hard().is_cancelled() {
        Ended::Stopped(StopReason::Hard)
    } else if core.shutdown.soft().is_cancelled() {
        Ended::Stopped(StopReason::Drain)
    } else {
        tracing::debug!(waited = ?at.since(task.next_attempt_at), "attempt begins");
        execute(&running, &held.lease).await
    };
    drop(permit);
    let outcome = settle(&running, ended).await;
    if let Some(outcome) = outcome {
        spans::note("outcome", outcome.as_str());
        metrics::TASK_RUN.record(&[task.kind.as_str(), outcome.as_str()], core.clock.monotonic().since(started));
    }
}

enum Ended {
    Decided(Decision),
    Stopped(StopReason),
}

async fn execute(running: &Running<'_>, lease: &Arc<Lease>) -> Ended {
    let Running { core, task, .. } = running;
    let Some(executor) = core.executors.get(&task.kind).cloned() else {
        // Claims ask for the kinds that there are executors for.
        return Ended::Stopped(StopReason::Drain);
    };
    let run = Run::new(Arc::clone(core), Arc::new((*task).clone()), Arc::clone(lease));
    // The call itself is inside, too: an executor may panic before it answers a future.
    let work = AssertUnwindSafe(async move { executor.execute(run).await }).catch_unwind();
    let drained = async {
        core.shutdown.soft().cancelled().await;
        core.clock.sleep(core.grace).await;
    };
    tokio::select! {
        biased;
        () = core.shutdown.hard().cancelled() => Ended::Stopped(StopReason::Hard),
        () = lease.stopped().cancelled() => Ended::Stopped(lease.reason().unwrap_or(StopReason::LeaseLost)),
        decided = work => Ended::Decided(decided.unwrap_or_else(|panic| Decision::Retry(panicked(&*panic)))),
        () = lease.ran_out(&core.clock) => Ended::Stopped(StopReason::LeaseLost),
        () = core.clock.sleep(core.config.attempt_deadline) => Ended::Stopped(StopReason::Deadline),
        () = drained => Ended::Stopped(StopReason::Drain),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = said, "the executor panicked");
    Failure::new(FailureCode::Internal, "Something went wrong inside.")
}

/// Writes the attempt's end; answers how it ended, if it is ours to say.
async fn settle(running: &Running<'_>, ended: Ended) -> Option<AttemptOutcome> {
    let Running { core, lease, .. } = running;
    let settled = match ended {
        Ended::Decided(Decision::Done(done)) => finish::complete(running, done).await,
        Ended::Decided(Decision::Retry(failure)) => finish::fail(running, failure, true).await,
        Ended::Decided(Decision::Fail(failure)) => finish::fail(running, failure, false).await,
        Ended::Stopped(StopReason::Deadline) => {
            lease.stop(StopReason::Deadline);
            let message = format!("The attempt ran over its deadline of {} s.", core.config.attempt_deadline.as_secs_f64());
            finish::fail(running, Failure::new(FailureCode::DeadlineExceeded, message), true).await
        }
        Ended::Stopped(StopReason::Unstorable) => {
            finish::fail(running, Failure::new(FailureCode::Internal, "What the task has done so far could not be stored."), false).await
        }
        Ended::Stopped(StopReason::Drain) => {
            lease.stop(StopReason::Drain);
            finish::release(running).await
        }
        Ended::Stopped(StopReason::Cancelled) => return Some(AttemptOutcome::Cancelled),
        Ended::Stopped(StopReason::Hard) => return None,
        Ended::Stopped(StopReason::LeaseLost) => Settled::Lost,
    };
    match settled {
        Settled::Ended(outcome) => Some(outcome),
        // Cancelled while its end was being written: the cancel was first.
        Settled::Lost if lease.reason() == Some(StopReason::Cancelled) => Some(AttemptOutcome::Cancelled),
        Settled::Lost => {
            metrics::LEASES_LOST.increment(&[]);
            spans::fail("lease-lost");
            core.complaints.lost();
            None
        }
        Settled::Stopped => None,
    }
}
