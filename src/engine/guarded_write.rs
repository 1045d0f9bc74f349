//! Writing an attempt's end until the database has taken it. A write whose outcome is unknown is tried again under the same lease token; when the guard then
//! refuses, the attempt's row tells whether an earlier try did happen. It is given up when the lease has run out: the rescuer has the task from then on.

use super::{core::is_permanent, outage::Outage, worker::Running};
use crate::{
    domain::task::{AttemptOutcome, Task},
    store::{self, Tx, attempt, task},
};
use futures::{FutureExt as _, future::BoxFuture};

/// What came of writing an attempt's end.
pub(super) enum Written {
    Done(Box<Task>),
    Lost,
    /// The database takes this write never, however often it is tried.
    Refused(store::Error),
    Stopped,
}

/// Writes until the database has taken it, or the lease is lost or has run out.
pub(super) async fn write_end<F>(running: &Running<'_>, outcome: AttemptOutcome, write: impl Fn() -> F) -> Written
where
    F: Future<Output = store::Result<Option<Task>>>,
{
    let Running { core, task, lease } = running;
    let mut outage = Outage::default();
    let mut tried = false;
    loop {
        let answer = tokio::select! {
            biased;
            () = core.shutdown.hard().cancelled() => return Written::Stopped,
            answer = write() => answer,
        };
        match answer {
            Ok(Some(task)) => return Written::Done(Box::new(task)),
            Ok(None) if tried => match happened(running, outcome).await {
                Ok(Some(task)) => return Written::Done(task),
                Ok(None) => return Written::Lost,
                Err(error) => wait(running, &mut outage, &error).await,
            },
            Ok(None) => return Written::Lost,
            Err(error) if is_permanent(&error) => return Written::Refused(error),
            Err(error) => {
                tried = true;
                wait(running, &mut outage, &error).await;
            }
        }
        if core.clock.monotonic() >= lease.expires() {
            tracing::debug!(taskId = %task.id, "the lease ran out before the attempt's end could be written");
            return Written::Lost;
        }
    }
}

async fn wait(running: &Running<'_>, outage: &mut Outage, error: &store::Error) {
    let wait = outage.note(running.core, "ending an attempt", error);
    let until = (running.core.clock.monotonic() + wait).min(running.lease.expires());
    tokio::select! {
        () = running.core.clock.sleep_until(until) => {}
        () = running.core.shutdown.hard().cancelled() => {}
    }
}

/// Whether an earlier try, whose answer was lost, did end this claim with this outcome.
fn happened<'a>(running: &Running<'a>, outcome: AttemptOutcome) -> BoxFuture<'a, store::Result<Option<Box<Task>>>> {
    let (id, claim_no) = (running.task.id, running.task.claim_no);
    running
        .core
        .db
        .read("claim_look_up", move |tx: &mut Tx<'_>| {
            async move {
                if attempt::outcome(tx, id, claim_no).await? == Some(outcome) {
                    Ok(task::find(tx, id).await?.map(Box::new))
                } else {
                    Ok(None)
                }
            }
            .boxed()
        })
        .boxed()
}
