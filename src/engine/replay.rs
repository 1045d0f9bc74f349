//! Replay: a FAILED task goes back into the queue under the same id, with its attempts reset and a new message; its dead letter is closed. In one transaction,
//! guarded by the dead letter not having been replayed and the task being FAILED, so of two operators who press at once one is told that it was done. The audit
//! entry commits with it.

use super::{core::Core, facade::Replayed};
use crate::{
    domain::{
        audit::{Action, Author, Entry},
        envelope::Envelope,
        ids::{DeadLetterId, MessageId},
        task::{Kind, Phase},
        time::Timestamp,
    },
    store::{self, Tx, audit, checkpoint, dead_letter, idempotency, outbox, task},
};
use futures::FutureExt as _;
use std::sync::Arc;

/// How often another task may take the agenda between our look and our write before we give up.
const TRIES: usize = 5;

pub(super) async fn replay(core: &Core, id: DeadLetterId, from_phase: Option<Phase>, author: &Author) -> store::Result<Replayed> {
    let mut tries = 0;
    let replayed = loop {
        tries += 1;
        let now = core.clock.now();
        let message_id: MessageId = core.entropy.id(now);
        let detail = from_phase.map(|phase| format!("from {phase}"));
        let entry = core.audit_entry(author, Action::DeadLetterReplay, &id, detail, now);
        let work = store::work(move |tx| {
            let entry = Arc::clone(&entry);
            async move { put_into_queue(tx, id, from_phase, message_id, &entry).await }.boxed()
        });
        match core.db.transaction("replay_task", work).await {
            // Another task of the agenda was accepted in between; the next look sees it.
            Err(error) if error.is_unique_violation() && tries < TRIES => {}
            answer => break answer?,
        }
    };
    if let Replayed::Queued(task) = &replayed {
        tracing::info!(
            taskId = %task.id, deadLetterId = %id, fromPhase = from_phase.map(tracing::field::display), "the task is replayed"
        );
        core.tell(task);
        core.handover.hint();
    }
    Ok(replayed)
}

async fn put_into_queue(
    tx: &mut Tx<'_>,
    id: DeadLetterId,
    from_phase: Option<Phase>,
    message_id: MessageId,
    entry: &Entry,
) -> store::Result<Replayed> {
    let now: Timestamp = entry.at;
    let Some(letter) = dead_letter::find(tx, id).await? else { return Ok(Replayed::Unknown) };
    let Some(failed) = task::find(tx, letter.task_id).await? else { return Ok(Replayed::Unknown) };
    if letter.replayed_at.is_some() {
        return Ok(Replayed::AlreadyReplayed);
    }
    if let (Kind::Protocol, Some(agenda_id)) = (failed.kind, &failed.agenda_id)
        && let Some(active) = task::active_of_agenda(tx, agenda_id).await?
        && active.id != failed.id
    {
        return Ok(Replayed::AgendaBusy(active.id));
    }
    if !dead_letter::mark_replayed(tx, id, now).await? {
        return Ok(Replayed::AlreadyReplayed);
    }
    let Some(task) = task::replay(tx, failed.id, now).await? else { return Ok(Replayed::AlreadyReplayed) };
    if let Some(phase) = from_phase {
        checkpoint::forget_from(tx, task.id, phase).await?;
    }
    idempotency::revive(tx, task.id).await?;
    let envelope = Envelope::process_task(message_id, task.id, &task.payload);
    outbox::insert(tx, &envelope, now, None, now).await?;
    audit::append(tx, entry).await?;
    Ok(Replayed::Queued(Box::new(task)))
}
