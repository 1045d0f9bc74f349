//! Cancelling, at every state: a guarded write that races with the finish, and whichever commits first stands. The executor is stopped at once if it runs in
//! this process; elsewhere its next guarded write tells it.

use super::{
    core::Core,
    facade::Cancelled,
    finish::{self, Closed, TerminalIds},
    leases::StopReason,
};
use crate::{
    domain::{
        failure::{Failure, FailureCode},
        ids::TaskId,
        task::{AttemptOutcome, Status},
    },
    store::{self, task},
};
use futures::FutureExt as _;
use std::sync::Arc;

pub(super) async fn cancel(core: &Core, id: TaskId) -> store::Result<Cancelled> {
    let now = core.clock.now();
    let ids = TerminalIds::make(core, now);
    let failure = Arc::new(Failure::new(FailureCode::Cancelled, "The task was cancelled."));
    let work = store::work(move |tx| {
        let failure = Arc::clone(&failure);
        async move {
            match task::cancel(tx, id, &failure, now).await? {
                Some(task) => {
                    let closed = Closed { task: &task, ids, outcome: AttemptOutcome::Cancelled, documents: None, at: now };
                    finish::close_tasks(tx, &[closed]).await?;
                    Ok(Cancelled::Now(task))
                }
                None => Ok(match task::find(tx, id).await? {
                    Some(task) if task.status == Status::Cancelled => Cancelled::Before(task),
                    Some(task) => Cancelled::AlreadyFinished(task),
                    None => Cancelled::Unknown,
                }),
            }
        }
        .boxed()
    });
    let cancelled = core.db.transaction("cancel_task", work).await?;
    if let Cancelled::Now(task) = &cancelled {
        core.stop_task(id, StopReason::Cancelled);
        finish::announce_end(core, task);
    }
    Ok(cancelled)
}
