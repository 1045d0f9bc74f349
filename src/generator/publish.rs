//! PUBLISH: the protocol's rows and the links of the completion event, in the terminal transaction of the task.
//!
//! What came out the same as the agenda's newest protocol *is* that protocol. Everything else is its next version, under the same number; nothing is overwritten.

use crate::{
    domain::{
        ids::{ProtocolId, TaskId},
        protocol::{Document, NewProtocol, Protocol},
        time::Timestamp,
    },
    engine::{Done, Effected, executor::Effect},
    store::protocol,
};
use serde_json::{Value, json};
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
    Effected { protocol_id: Some(protocol.id), documents: Some(links(protocol.id, &protocol.documents)) }
}

/// The documents as events and answers list them.
#[must_use]
pub fn links(protocol: ProtocolId, documents: &[Document]) -> Value {
    let links = documents.iter().map(|document| {
        json!({
            "format": document.format,
            "url": format!("/protocol/{protocol}/document.{}", document.format),
            "bytes": document.bytes,
            "sha256": document.sha256,
            "pages": document.pages,
        })
    });
    links.collect()
}
