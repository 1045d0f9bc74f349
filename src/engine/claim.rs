//! Taking tasks under a lease, whether a message asked for it or the table was looked at.
//!
//! The inbox row and the claim commit together. The lease token is made beforehand: whatever error a claim's transaction ends with, the tasks are looked up by
//! their tokens, and those that are held are run. Only a crash between the commit and that look leaves a lease to the rescuer.

use super::{
    core::{Core, is_permanent},
    outage::Outage,
    pause,
};
use crate::{
    base::{chain::chain, clock::Monotonic, metrics},
    domain::{
        ids::{AttemptId, LeaseToken, MessageId, TaskId},
        task::{Kind, Task},
        time::Timestamp,
    },
    store::{self, Tx, attempt, inbox, outbox, task},
};
use futures::FutureExt as _;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A task that is to be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) task_id: TaskId,
    /// The message that asked for it; `None`: found in the table.
    pub(super) message_id: Option<MessageId>,
}

/// A task that was taken.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) task: Task,
    pub(super) token: LeaseToken,
    /// Until when the lease surely holds: counted from before the claim was sent.
    pub(super) expires: Monotonic,
    pub(super) at: Timestamp,
}

/// What came of trying to take a task.
#[derive(Debug, Clone)]
pub(super) enum Taken {
    Claimed(Box<Claimed>),
    /// The message had been taken before.
    Duplicate,
    /// Somebody has it, it ended, or it is not due: nothing to do.
    Refused,
    /// Claiming is paused: its message, if one asked for it, is not taken.
    Paused,
    /// Its row cannot be read or written; it was left alone.
    Broken,
}

struct Try {
    wanted: Wanted,
    token: LeaseToken,
    attempt_id: AttemptId,
}

/// Tries to take each of `wanted`, in one transaction; answers in their order.
///
/// # Errors
/// When the database is away, or the process ends: nothing is held then that this process knows of.
pub(super) async fn claim(core: &Core, name: &'static str, wanted: &[Wanted]) -> store::Result<Vec<Taken>> {
    let Some(kinds) = core.kinds() else { return Ok(vec![Taken::Refused; wanted.len()]) };
    match claim_together(core, name, kinds, wanted).await {
        // One row that cannot be read or written must not keep the others from being taken.
        Err(error) if is_permanent(&error) && wanted.len() > 1 => {
            let mut taken = Vec::with_capacity(wanted.len());
            for one in wanted {
                match claim_together(core, name, kinds, std::slice::from_ref(one)).await {
                    Err(error) if is_permanent(&error) => taken.push(broken(one, &error)),
                    answer => taken.append(&mut answer?),
                }
            }
            Ok(taken)
        }
        Err(error) if is_permanent(&error) => Ok(wanted.iter().map(|one| broken(one, &error)).collect()),
        answer => answer,
    }
}

fn broken(wanted: &Wanted, error: &store::Error) -> Taken {
    tracing::error!(taskId = %wanted.task_id, error = chain(&error), "a task cannot be taken");
    Taken::Broken
}

async fn claim_together(core: &Core, name: &'static str, kinds: [Kind; 2], wanted: &[Wanted]) -> store::Result<Vec<Taken>> {
    let sent = core.clock.monotonic();
    let now = core.clock.now();
    let claim = task::Claim { now, until: now + core.config.lease, worker_id: core.worker_id, kinds };
    let expires = sent + core.config.lease;
    let tries: Arc<[Try]> =
        wanted.iter().map(|wanted| Try { wanted: *wanted, token: core.entropy.id(now), attempt_id: core.entropy.id(now) }).collect();
    let work = {
        let tries = Arc::clone(&tries);
        store::work(move |tx| {
            let tries = Arc::clone(&tries);
            async move {
                // Before anything is written: a message that comes during a pause is still to be taken after it.
                match pause::look(tx).await? {
                    Some(paused) => Ok(Claims::Paused(paused)),
                    None => claim_all(tx, &tries, &claim).await.map(Claims::Tried),
                }
            }
            .boxed()
        })
    };
    let answers = match core.db.transaction(name, work).await {
        Ok(Claims::Tried(answers)) => {
            core.pause.note(None);
            answers
        }
        Ok(Claims::Paused(paused)) => {
            core.pause.note(Some(paused));
            return Ok(vec![Taken::Paused; wanted.len()]);
        }
        Err(error) if is_permanent(&error) => return Err(error),
        Err(error) => look_up(core, &tries, expires, error).await?,
    };
    let taken = answers.into_iter().zip(tries.iter()).map(|(answer, one)| match answer {
        Answer::Claimed(task) => {
            metrics::TASK_PICKUP.record(&[], now.since(task.next_attempt_at));
            core.tell(&task);
            Taken::Claimed(Box::new(Claimed { task: *task, token: one.token, expires, at: now }))
        }
        Answer::Duplicate => {
            metrics::INBOX_DUPLICATES.increment(&[]);
            tracing::debug!(taskId = %one.wanted.task_id, messageId = ?one.wanted.message_id, "a message came again and was dropped");
            Taken::Duplicate
        }
        Answer::Refused => {
            tracing::debug!(taskId = %one.wanted.task_id, messageId = ?one.wanted.message_id, "nothing to take");
            Taken::Refused
        }
    });
    Ok(taken.collect())
}

/// What the transaction came to.
enum Claims {
    Paused(pause::Paused),
    /// In the order of the tries.
    Tried(Vec<Answer>),
}

#[derive(Debug, Clone)]
enum Answer {
    Claimed(Box<Task>),
    Duplicate,
    Refused,
}

/// As many statements for a hundred as for one.
async fn claim_all(tx: &mut Tx<'_>, tries: &[Try], claim: &task::Claim) -> store::Result<Vec<Answer>> {
    let messages: Vec<(MessageId, TaskId)> = tries.iter().filter_map(|one| Some((one.wanted.message_id?, one.wanted.task_id))).collect();
    let mut new: HashSet<MessageId> =
        if messages.is_empty() { HashSet::new() } else { inbox::insert(tx, &messages, claim.now).await?.into_iter().collect() };
    if !messages.is_empty() {
        // What has arrived was sent. Marked here, its row cannot be taken for unsent when the task ends before the relay comes to mark it.
        let ids: Vec<MessageId> = messages.iter().map(|(id, _)| *id).collect();
        outbox::mark_published(tx, &ids, claim.now).await?;
    }
    // Each new message counts once, should it be among these twice.
    let asked: Vec<(&Try, bool)> = tries.iter().map(|one| (one, one.wanted.message_id.is_none_or(|id| new.remove(&id)))).collect();
    let wanted: Vec<(TaskId, LeaseToken)> = asked.iter().filter(|(_, new)| *new).map(|(one, _)| (one.wanted.task_id, one.token)).collect();
    let mut taken: HashMap<LeaseToken, Task> =
        if wanted.is_empty() { HashMap::new() } else { task::claim(tx, &wanted, claim).await?.into_iter().collect() };
    let opened: Vec<(AttemptId, &Task)> = tries.iter().filter_map(|one| Some((one.attempt_id, taken.get(&one.token)?))).collect();
    if !opened.is_empty() {
        attempt::open(tx, &opened, claim.worker_id, claim.now).await?;
    }
    let found: Vec<TaskId> =
        tries.iter().filter(|one| one.wanted.message_id.is_none()).filter_map(|one| Some(taken.get(&one.token)?.id)).collect();
    if !found.is_empty() {
        // Their messages are not needed any more, sent or not; one that comes late is a duplicate.
        inbox::insert_of_tasks(tx, &found, claim.now).await?;
        outbox::mark_tasks(tx, &found, claim.now).await?;
    }
    let answer = |(one, new): (&Try, bool)| match taken.remove(&one.token) {
        Some(task) => Answer::Claimed(Box::new(task)),
        None if new => Answer::Refused,
        None => Answer::Duplicate,
    };
    Ok(asked.into_iter().map(answer).collect())
}

/// The transaction ended with an error that leaves open whether it happened: the tokens tell.
async fn look_up(core: &Core, tries: &Arc<[Try]>, expires: Monotonic, cause: store::Error) -> store::Result<Vec<Answer>> {
    let mut outage = Outage::default();
    let mut wait = outage.note(core, "claiming", &cause);
    loop {
        let leases: Arc<[_]> = tries.iter().map(|one| (one.wanted.task_id, one.token)).collect();
        let work = store::work(move |tx| {
            let leases = Arc::clone(&leases);
            async move { task::held(tx, &leases).await }.boxed()
        });
        match core.db.read("claim_look_up", work).await {
            Ok(held) if held.is_empty() => return Err(cause),
            Ok(held) => {
                let mut held: HashMap<LeaseToken, Task> = held.into_iter().collect();
                let answer = |one: &Try| held.remove(&one.token).map_or(Answer::Refused, |task| Answer::Claimed(Box::new(task)));
                return Ok(tries.iter().map(answer).collect());
            }
            Err(error) => wait = wait.max(outage.note(core, "looking a claim up", &error)),
        }
        // Once the lease has run out the rescuer takes what was claimed, if anything was.
        if core.clock.monotonic() >= expires {
            return Err(cause);
        }
        tokio::select! {
            () = core.clock.sleep(wait) => {}
            () = core.shutdown.hard().cancelled() => return Err(cause),
        }
    }
}

/// What has been due in the table at least since `before`, longest first, whether or not its messages arrived.
pub(super) async fn due(core: &Core, before: Timestamp, after: Option<task::Due>, limit: usize) -> store::Result<Vec<task::Due>> {
    let Some(kinds) = core.kinds() else { return Ok(Vec::new()) };
    core.db.read("due_tasks", move |tx| async move { task::due(tx, before, after, kinds, limit).await }.boxed()).await
}
