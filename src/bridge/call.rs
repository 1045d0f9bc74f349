//! One v1 call from end to end: stage gate, owed answer, join or submit, wait, answer.

use super::{
    answer::{Answer, Gone, HandedOut, Refusal},
    owed,
    presentation::Presentation,
    record::Record,
    stage,
    waiters::Waiters,
};
use crate::{
    base::{
        chain::chain,
        clock::{Clock, Monotonic},
        config, metrics,
        shutdown::Shutdown,
    },
    callers::{Identity, Ledger},
    domain::{
        ids::{AgendaId, TaskId},
        protocol::Protocol,
        task::{Kind, Status, Task},
        time::Timestamp,
        trace::TraceContext,
    },
    engine::{Engine, Submission, SubmitError, Submitted, Via, WaitFor, Waited, facade::SubmitEffect},
    generator::Generator,
    store::{
        self, Db,
        owed_answer::{self, Owed},
        task_follower,
    },
};
use std::{future::Future, sync::Arc, time::Duration};

/// The longest that asking a source whether an owed answer still holds may take.
const UNCHANGED_PATIENCE: Duration = Duration::from_secs(2);
/// A database that is away is answered within 5 s; this leaves time to say so.
const STORE_PATIENCE: Duration = Duration::from_millis(4500);

/// One v1 call.
#[derive(Debug, Clone)]
pub struct Call {
    pub identity: Identity,
    pub agenda_id: AgendaId,
    /// `Prefer: wait=N`: lowers the configured wait.
    pub wait: Option<Duration>,
    /// `Prefer: respond-async`.
    pub respond_async: bool,
    /// `Cache-Control: no-cache`: take no owed answer.
    pub fresh: bool,
    pub trace: TraceContext,
    /// When the call came in.
    pub since: Monotonic,
}

/// The bridge; cheap to clone.
#[derive(Clone)]
pub struct Bridge(Arc<Inner>);

struct Inner {
    parts: Parts,
    waiters: Waiters,
}

/// What the bridge is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    pub config: config::Legacy,
    pub engine: Engine,
    pub generator: Generator,
    pub db: Db,
    pub clock: Clock,
    pub ledger: Ledger,
    pub presentation: Presentation,
    /// How many calls the process can hold; `None`: as many as are configured.
    pub most_waiters: Option<usize>,
    pub shutdown: Shutdown,
}

/// Proof that the stage gate let the caller in.
#[derive(Debug)]
pub struct Admitted(());

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("config", &self.0.parts.config).field("waiters", &self.0.waiters).finish_non_exhaustive()
    }
}

impl Bridge {
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let config::Legacy { max_waiters, max_waiters_per_caller, .. } = parts.config;
        let most = parts.most_waiters.map_or(max_waiters, |most| most.min(max_waiters));
        let waiters = Waiters::new(most, max_waiters_per_caller.unwrap_or(max_waiters));
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a double's 53 bits")]
        metrics::LEGACY_SUNSET.set(&[], parts.config.sunset.map_or(0.0, |sunset| sunset.as_seconds() as f64));
        Self(Arc::new(Inner { parts, waiters }))
    }

    /// Brings the gauge of the longest wait up to date.
    pub fn show_longest_wait(&self) {
        self.0.waiters.show_longest(self.0.parts.clock.monotonic());
    }

    /// The stage gate. It comes before everything that could be wrong with a call: who is shown out is told so, and not to correct a mistake first.
    ///
    /// # Errors
    /// Why v1 is closed to the caller; [`Bridge::turn_away`] notes that.
    pub fn admit(&self, identity: &Identity) -> Result<Admitted, Gone> {
        let Parts { config, clock, .. } = &self.0.parts;
        stage::gate(config, identity, clock.now()).map_or(Ok(Admitted(())), Err)
    }

    /// Carries out a call. Dropping the future, as a client that hangs up does, cancels nothing but the wait.
    pub async fn call(&self, _admitted: Admitted, call: Call) -> Answer {
        let mut record = self.open(&call.identity, call.agenda_id.as_str(), call.trace.trace_id(), call.since);
        let answer = self.carry_out(&call, &mut record).await;
        record.close(answer.outcome());
        answer
    }

    /// A call that the stage gate did not let in.
    pub async fn turn_away(&self, identity: &Identity, agenda_id: &str, trace_id: &str, since: Monotonic) {
        self.came_to_nothing(identity, agenda_id, trace_id, since, "gone").await;
    }

    /// A call that was refused at the door, before it came here: it is logged and counted like every other.
    pub async fn refused_at_the_door(&self, identity: &Identity, agenda_id: &str, trace_id: &str, since: Monotonic) {
        self.came_to_nothing(identity, agenda_id, trace_id, since, "refused").await;
    }

    async fn came_to_nothing(&self, identity: &Identity, agenda_id: &str, trace_id: &str, since: Monotonic, outcome: &'static str) {
        let mut record = self.open(identity, agenda_id, trace_id, since);
        record.refused().await;
        record.close(outcome);
    }

    fn open(&self, identity: &Identity, agenda_id: &str, trace_id: &str, since: Monotonic) -> Record {
        let Parts { ledger, clock, shutdown, .. } = &self.0.parts;
        Record::open(ledger.clone(), clock.clone(), shutdown.clone(), identity, agenda_id, trace_id, since)
    }

    /// What comes before and after the wait is boxed: thousands of calls wait at once, and each would keep the room of the largest step all the while.
    async fn carry_out(&self, call: &Call, record: &mut Record) -> Answer {
        let Parts { config, engine, .. } = &self.0.parts;
        let waited = call.wait.unwrap_or(config.timeout).min(config.timeout);
        let deadline = call.since + waited;
        let patience = call.since + STORE_PATIENCE;

        if !call.fresh {
            match Box::pin(self.owed(call, deadline, patience, record)).await {
                Ok(None) => {}
                Ok(Some((owed, protocol))) => {
                    Box::pin(record.answered_from(owed.task)).await;
                    return Box::pin(self.completed(owed.task, owed.finished_at, protocol, record)).await;
                }
                Err(refusal) => return Box::pin(refuse(record, refusal)).await,
            }
        }

        let submitted = match Box::pin(self.within(patience, engine.submit(submission(call), Some(effect(call, record))))).await {
            Some(Ok(submitted)) => submitted,
            Some(Err(SubmitError::Overloaded(why))) => return Box::pin(refuse(record, Refusal::Overloaded(why))).await,
            Some(Err(SubmitError::Store(error))) => return Box::pin(refuse(record, Refusal::Store(error, None))).await,
            // A v1 call carries no key.
            Some(Err(SubmitError::KeyReused)) => unreachable!("the bridge submits without an idempotency key"),
            None => return Box::pin(refuse(record, Refusal::TooSlow(None))).await,
        };
        let Submitted { task, joined } = submitted;
        record.committed_with(task.id);
        if call.respond_async {
            return Answer::Accepted { task: Box::new(task), joined };
        }
        let Some(_place) = self.0.waiters.enter(record.name(), call.since) else {
            return Answer::StillRunning { task: Box::new(task), waited: Duration::ZERO };
        };
        match engine.hub().wait(task.id, WaitFor::Finish, deadline).await {
            Ok(Waited::Reached(task)) => Box::pin(self.finished(task, record)).await,
            Ok(Waited::Deadline(task)) => Answer::StillRunning { task: Box::new(task), waited },
            Ok(Waited::Draining(task)) => Answer::Draining(task.id),
            Ok(Waited::Unknown) => Answer::Refused(Refusal::Store(
                store::Error::Corrupt { table: "task", column: "id", row: task.id.to_string(), reason: "the task is gone".to_owned() },
                Some(task.id),
            )),
            Err(error) => {
                tracing::warn!(error = chain(&error), taskId = %task.id, "the last look before a time-out could not be had");
                Answer::StillRunning { task: Box::new(task), waited }
            }
        }
    }

    /// The answer that the caller is owed, if the agenda has not changed since.
    async fn owed(
        &self,
        call: &Call,
        deadline: Monotonic,
        patience: Monotonic,
        record: &Record,
    ) -> Result<Option<(Owed, Protocol)>, Refusal> {
        let Parts { config, generator, db, clock, .. } = &self.0.parts;
        let finished_after = clock.now() - config.owed_window;
        let look = owed::find(db, record.name().to_owned(), call.agenda_id.clone(), finished_after);
        let Some(found) = self.within(patience, look).await else { return Err(Refusal::TooSlow(None)) };
        let Some((owed, protocol)) = found.map_err(|error| Refusal::Store(error, None))? else { return Ok(None) };
        let left = deadline.since(clock.monotonic());
        let unchanged = generator.is_unchanged(&protocol, UNCHANGED_PATIENCE.min(left / 2)).await;
        Ok(unchanged.then_some((owed, protocol)))
    }

    /// The task has ended.
    async fn finished(&self, task: Task, record: &Record) -> Answer {
        let Parts { db, clock, shutdown, .. } = &self.0.parts;
        let (Status::Completed, Some(protocol_id)) = (task.status, task.protocol_id) else {
            // Not waited for: the failure is the answer, and the next call drops the row too.
            if let Some(agenda_id) = task.agenda_id.clone() {
                let (db, name) = (db.clone(), record.name().to_owned());
                shutdown.spawn("owed_answer", async move {
                    if let Err(error) = owed::forget_unsuccessful(&db, name, agenda_id).await {
                        tracing::debug!(error = chain(&error), "rows of an unsuccessful task stay until the next call");
                    }
                });
            }
            return Answer::Failed(Box::new(task));
        };
        let patience = clock.monotonic() + STORE_PATIENCE;
        match self.within(patience, owed::protocol_of(db, protocol_id, task.id)).await {
            Some(Ok(protocol)) => self.completed(task.id, task.finished_at.unwrap_or_else(|| clock.now()), protocol, record).await,
            Some(Err(error)) => Answer::Refused(Refusal::Store(error, Some(task.id))),
            None => Answer::Refused(Refusal::TooSlow(Some(task.id))),
        }
    }

    async fn completed(&self, task: TaskId, finished_at: Timestamp, protocol: Protocol, record: &Record) -> Answer {
        let Parts { presentation, db, shutdown, .. } = &self.0.parts;
        let handed_out = HandedOut {
            db: db.clone(),
            shutdown: shutdown.clone(),
            caller: record.name().to_owned(),
            agenda_id: protocol.agenda_id.clone(),
            finished_at,
        };
        match presentation.body(protocol).await {
            Ok(body) => Answer::Completed { task, body, handed_out },
            Err(error) => Answer::Refused(Refusal::Unpresentable(error, task)),
        }
    }

    async fn within<T>(&self, deadline: Monotonic, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.0.parts.clock.sleep_until(deadline) => None,
        }
    }
}

async fn refuse(record: &mut Record, refusal: Refusal) -> Answer {
    record.refused().await;
    Answer::Refused(refusal)
}

fn submission(call: &Call) -> Submission {
    Submission {
        kind: Kind::Protocol,
        agenda_id: Some(call.agenda_id.clone()),
        payload: serde_json::json!({ "agendaId": call.agenda_id }).to_string(),
        client_reference: None,
        run_at: None,
        callback_url: None,
        // The agenda is v1's key.
        idempotency: None,
        caller: call.identity.caller.name.clone(),
        via: Via::V1,
        trace: Some(call.trace.clone()),
    }
}

/// What commits with the submit or join: the ledger's entry, and that the caller now waits for this task's answer.
fn effect(call: &Call, record: &Record) -> SubmitEffect {
    let (entry, agenda_id) = (record.entry().clone(), call.agenda_id.clone());
    let now = entry.at();
    let waits = !call.respond_async;
    let caller = call.identity.caller.name.clone();
    Arc::new(move |tx, submitted| {
        let (entry, agenda_id, task) = (entry.clone(), agenda_id.clone(), submitted.task.id);
        let joined_anothers = (submitted.task.caller != caller).then(|| caller.clone());
        Box::pin(async move {
            if let Some(caller) = joined_anothers {
                // From now on it follows that task as its own.
                task_follower::note(tx, task, &caller).await?;
            }
            owed_answer::forget_unsuccessful(tx, entry.name(), &agenda_id).await?;
            if waits {
                owed_answer::note(tx, entry.name(), &agenda_id, task, now).await?;
            }
            entry.write(tx).await
        })
    })
}
