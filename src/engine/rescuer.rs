//! The rescuer: takes tasks back from workers whose lease ran out, on every replica, jittered, each row in a transaction of its own.
//!
//! A lost worker counts as an attempt: a task that kills its workers ends as a dead letter. One row that cannot be rescued never stops the sweep. Renewal and
//! rescue exclude each other by the row's lock and the guard on the token.

use super::{
    core::Core,
    finish::{self, Closed, TerminalIds},
    leases::StopReason,
    outage::Outage,
};
use crate::{
    base::{chain::chain, metrics},
    domain::{
        failure::{Failure, FailureCode},
        ids::MessageId,
        retry::RetryPolicy,
        task::{AttemptOutcome, Status, Task},
    },
    store::{self, task},
};
use futures::FutureExt as _;
use std::{sync::Arc, time::Duration};

const LONGEST_PERIOD: Duration = Duration::from_secs(2);
const BATCH: usize = 100;

pub(super) struct Rescuer {
    core: Arc<Core>,
}

impl Rescuer {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) async fn run(self) {
        let core = &self.core;
        let mut outage = Outage::default();
        // Short leases are swept more often, so that a rescue is never late by more than a part of the lease.
        let period = (core.config.lease / 4).clamp(Duration::from_millis(50), LONGEST_PERIOD);
        loop {
            let wait = match self.tick().await {
                Ok(_) => {
                    outage.over();
                    core.jittered(period, 0.5)
                }
                Err(error) => outage.note(core, "rescuer", &error),
            };
            tokio::select! {
                () = core.clock.sleep(wait) => {}
                () = core.shutdown.soft().cancelled() => return,
            }
        }
    }

    /// One sweep over all leases that have run out; answers how many tasks were taken back.
    ///
    /// # Errors
    /// When the table cannot be read, or the database goes away in between.
    pub(super) async fn tick(&self) -> store::Result<usize> {
        let now = self.core.clock.now();
        let mut after: Option<task::Expired> = None;
        let mut rescued = 0;
        loop {
            let from = after;
            let work = store::work(move |tx| async move { task::expired(tx, now, from.as_ref(), BATCH).await }.boxed());
            let expired = self.core.db.read("expired_leases", work).await?;
            for one in &expired {
                match self.rescue(*one).await {
                    Ok(true) => rescued += 1,
                    Ok(false) => {}
                    // Not this row's fault: the others would each wait as long for nothing.
                    Err(error) if error.is_unavailable() => return Err(error),
                    Err(error) => {
                        tracing::error!(taskId = %one.id, error = chain(&error), "a task whose worker is gone cannot be taken back");
                    }
                }
            }
            if expired.len() < BATCH {
                return Ok(rescued);
            }
            after = expired.last().copied();
        }
    }

    async fn rescue(&self, expired: task::Expired) -> store::Result<bool> {
        let core = &self.core;
        let now = core.clock.now();
        let ids = TerminalIds::make(core, now);
        let message_id: MessageId = core.entropy.id(now);
        let work = store::work(move |tx| {
            async move {
                let Some(held) = task::lock_expired(tx, &expired, now).await? else { return Ok(None) };
                let mut failure = Failure::new(FailureCode::WorkerLost, "The worker that held the task was lost.");
                failure.phase = held.phase;
                if RetryPolicy::tries_again(failure.retryable, held.attempt_no, held.max_attempts) {
                    let put_back =
                        task::PutBack { give_back_attempt: false, next_attempt_at: now, failure: Some(failure.clone()), reached: None };
                    let Some(task) = task::put_back(tx, expired.id, expired.token, &put_back).await? else { return Ok(None) };
                    finish::queue_again(tx, &task, message_id, AttemptOutcome::WorkerLost, Some(&failure), now).await?;
                    Ok(Some(task))
                } else {
                    let task::Expired { id, token, .. } = expired;
                    let ending = task::Ending { id, token, status: Status::Failed, failure: Some(failure), reached: None, at: now };
                    let Some(task) = task::end(tx, &[ending]).await?.pop() else { return Ok(None) };
                    let closed = Closed { task: &task, ids, outcome: AttemptOutcome::WorkerLost, documents: &[], at: now };
                    finish::close_tasks(tx, &[closed]).await?;
                    Ok(Some(task))
                }
            }
            .boxed()
        });
        let Some(task) = core.db.transaction("rescue", work).await? else { return Ok(false) };
        // It may have been ours: too slow to renew, and stopped by now or stopped here.
        core.leases.stop_token(expired.token, StopReason::LeaseLost);
        self.announce(&task);
        Ok(true)
    }

    fn announce(&self, task: &Task) {
        metrics::TASKS_RESCUED.increment(&[]);
        tracing::warn!(
            taskId = %task.id, agendaId = task.agenda_id.as_ref().map(tracing::field::display), claim = task.claim_no,
            attempt = task.attempt_no, maxAttempts = task.max_attempts, status = %task.status, "the worker was lost and the task taken back"
        );
        if task.status.is_terminal() {
            finish::announce_end(&self.core, task);
        } else {
            self.core.tell(task);
            self.core.handover.hint();
        }
    }
}
