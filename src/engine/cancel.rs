//! Cancelling, at every state: a guarded write that races with the finish, and whichever commits first stands. The executor is stopped at once if it runs in
//! this process; elsewhere its next guarded write tells it. The audit entry commits with the cancel.

use super::{
    core::Core,
    facade::Cancelled,
    finish::{self, Closed, TerminalIds},
    leases::StopReason,
};
use crate::{
    domain::{
        audit::{Action, Author},
        failure::{Failure, FailureCode},
        ids::TaskId,
        task::{AttemptOutcome, Status},
    },
    store::{self, audit, task},
};
use futures::FutureExt as _;
use std::sync::Arc;

pub(super) async fn cancel(core: &Core, id: TaskId, author: &Author) -> store::Result<Cancelled> {
    let now = core.clock.now();
    let ids = TerminalIds::make(core, now);
    let failure = Arc::new(Failure::new(FailureCode::Cancelled, "The task was cancelled."));
    let entry = core.audit_entry(author, Action::TaskCancel, &id, None, now);
    let work = store::work(move |tx| {
        let (failure, entry) = (Arc::clone(&failure), Arc::clone(&entry));
        async move {
            match task::cancel(tx, id, &failure, now).await? {
                Some(task) => {
                    let closed = Closed { task: &task, ids, outcome: AttemptOutcome::Cancelled, documents: &[], at: now };
                    finish::close_tasks(tx, &[closed]).await?;
                    audit::append(tx, &entry).await?;
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
