//! Owed answers: what a caller's earlier call left to be picked up.

use crate::{
    domain::{
        ids::{AgendaId, ProtocolId, TaskId},
        protocol::Protocol,
        time::Timestamp,
    },
    store::{
        self, Db,
        owed_answer::{self, Owed},
        protocol,
    },
};

/// The COMPLETED task whose answer `caller` is owed, with its protocol; none while the agenda has an active task.
pub(super) async fn find(
    db: &Db,
    caller: String,
    agenda_id: AgendaId,
    finished_after: Timestamp,
) -> store::Result<Option<(Owed, Protocol)>> {
    db.read("owed_answer", move |tx| {
        let (caller, agenda_id) = (caller.clone(), agenda_id.clone());
        Box::pin(async move {
            let Some(owed) = owed_answer::find(tx, &caller, &agenda_id, finished_after).await? else { return Ok(None) };
            Ok(protocol::find(tx, owed.protocol).await?.map(|protocol| (owed, protocol)))
        })
    })
    .await
}

/// The answer of the task finished at `finished_at`, and the agenda's older ones, are owed no longer.
pub(super) async fn forget(db: &Db, caller: String, agenda_id: AgendaId, finished_at: Timestamp) -> store::Result<()> {
    db.transaction("owed_answer", move |tx| {
        let (caller, agenda_id) = (caller.clone(), agenda_id.clone());
        Box::pin(async move { owed_answer::forget(tx, &caller, &agenda_id, finished_at).await })
    })
    .await
}

/// Drops what calls left whose task failed or was cancelled.
pub(super) async fn forget_unsuccessful(db: &Db, caller: String, agenda_id: AgendaId) -> store::Result<()> {
    db.transaction("owed_answer", move |tx| {
        let (caller, agenda_id) = (caller.clone(), agenda_id.clone());
        Box::pin(async move { owed_answer::forget_unsuccessful(tx, &caller, &agenda_id).await })
    })
    .await
}

/// The protocol of a completed task.
pub(super) async fn protocol_of(db: &Db, id: ProtocolId, task: TaskId) -> store::Result<Protocol> {
    let found = db.read("owed_answer", move |tx| Box::pin(async move { protocol::find(tx, id).await })).await?;
    found.ok_or_else(|| store::Error::Corrupt {
        table: "task",
        column: "protocol_id",
        row: task.to_string(),
        reason: format!("there is no protocol {id}"),
    })
}
