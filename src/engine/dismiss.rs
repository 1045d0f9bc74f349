//! Dismissing: an operator says that nothing more is to be done about a dead letter. It is closed, its task stays FAILED, and it may still be replayed by its id.
//! The audit entry commits with it.

use super::core::Core;
use crate::{
    domain::{
        audit::{Action, Author},
        dead_letter::DeadLetter,
        ids::DeadLetterId,
    },
    store::{self, audit, dead_letter},
};
use futures::FutureExt as _;
use std::sync::Arc;

/// What came of asking for it.
#[derive(Debug, Clone)]
pub enum Dismissed {
    /// It is closed, now or since an earlier time.
    Closed(Box<DeadLetter>),
    AlreadyReplayed,
    Unknown,
}

pub(super) async fn dismiss(core: &Core, id: DeadLetterId, author: &Author) -> store::Result<Dismissed> {
    let now = core.clock.now();
    let entry = core.audit_entry(author, Action::DeadLetterDismiss, &id, None, now);
    let work = store::work(move |tx| {
        let entry = Arc::clone(&entry);
        async move {
            if dead_letter::dismiss(tx, id, now).await? {
                audit::append(tx, &entry).await?;
            }
            Ok(match dead_letter::find(tx, id).await? {
                None => Dismissed::Unknown,
                Some(letter) if letter.replayed_at.is_some() => Dismissed::AlreadyReplayed,
                Some(letter) => Dismissed::Closed(Box::new(letter)),
            })
        }
        .boxed()
    });
    core.db.transaction("dismiss_dead_letter", work).await
}
