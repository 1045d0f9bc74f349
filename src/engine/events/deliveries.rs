//! Deliveries, looked at and begun anew by hand.

use crate::{
    domain::{
        audit::{Action, Author},
        cursor::{Cursor, Page},
        delivery::{Delivery, Sink},
        ids::DeliveryId,
    },
    engine::core::Core,
    store::{
        self, audit,
        delivery::{self, DeliveryFilter},
    },
};
use futures::FutureExt as _;
use std::sync::Arc;

/// Newest first.
pub(in crate::engine) async fn list(
    core: &Core,
    filter: DeliveryFilter,
    cursor: Option<Cursor>,
    limit: usize,
) -> store::Result<Page<Delivery>> {
    let work = store::work(move |tx| {
        let filter = filter.clone();
        async move { delivery::list(tx, &filter, cursor, limit + 1).await }.boxed()
    });
    let deliveries = core.db.read("deliveries", work).await?;
    Ok(Page::from_rows(deliveries, limit, |delivery| Cursor { at: delivery.created_at, id: delivery.id.0 }))
}

/// Begins one anew, whether it was given up, delivered or waits for its next try; `None`: there is none.
pub(in crate::engine) async fn resend(core: &Core, id: DeliveryId, author: &Author) -> store::Result<Option<Delivery>> {
    let now = core.clock.now();
    let entry = core.audit_entry(author, Action::DeliveryResend, &id, None, now);
    let work = store::work(move |tx| {
        let entry = Arc::clone(&entry);
        async move {
            if delivery::find(tx, id).await?.is_none() {
                return Ok(None);
            }
            delivery::resend(tx, id, now).await?;
            audit::append(tx, &entry).await?;
            delivery::find(tx, id).await
        }
        .boxed()
    });
    let found = core.db.transaction("resend", work).await?;
    core.deliver.notify_one();
    Ok(found)
}

/// Begins every one anew that was given up, of one sink or of all; answers how many.
pub(in crate::engine) async fn resend_failed(core: &Core, sink: Option<Sink>, author: &Author) -> store::Result<u64> {
    let now = core.clock.now();
    let object = sink.as_ref().map_or_else(|| "all failed".to_owned(), ToString::to_string);
    let entry = core.audit_entry(author, Action::DeliveryResend, &object, None, now);
    let sink = Arc::new(sink);
    let work = store::work(move |tx| {
        let (entry, sink) = (Arc::clone(&entry), Arc::clone(&sink));
        async move {
            let count = delivery::resend_failed(tx, (*sink).as_ref(), now).await?;
            audit::append(tx, &entry).await?;
            Ok(count)
        }
        .boxed()
    });
    let count = core.db.transaction("resend", work).await?;
    core.deliver.notify_one();
    Ok(count)
}
