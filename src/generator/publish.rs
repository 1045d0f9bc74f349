//! PUBLISH: the protocol's rows and the links of the completion event, in the terminal transaction of the task.
//!
//! What came out the same as the agenda's newest protocol *is* that protocol. Everything else is its next version, under the same number; nothing is overwritten.

use crate::{
    domain::{
        event::EventDocument,
        ids::TaskId,
        protocol::{NewProtocol, Protocol},
        time::Timestamp,
    },
    engine::{Done, Effected, executor::Effect},
    store::protocol,
};
use std::sync::Arc;

/// What commits with the finish.
#[must_use]
pub fn publish(new: NewProtocol, task: TaskId, now: Timestamp) -> Done {
    let new = Arc::new(new);
    let effect: Effect = Arc::new(move |tx| {
        let new = Arc::clone(&new);
        Box::pin(async move {
            let protocol = match protocol::newest(tx, &new.agenda_id).await? {
                Some(newest) if newest.fingerprint == new.fingerprint => newest,
                _ => protocol::publish(tx, &new, task, now).await?,
            };
            Ok(effected(&protocol))
        })
    });
    Done { effect: Some(effect) }
}

fn effected(protocol: &Protocol) -> Effected {
    Effected { protocol_id: Some(protocol.id), documents: links(protocol) }
}

/// The documents as events list them.
fn links(protocol: &Protocol) -> Vec<EventDocument> {
    protocol.documents.iter().map(|document| EventDocument::of(protocol.id, document)).collect()
}
