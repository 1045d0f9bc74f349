//! The relay: claims due, unpublished outbox rows by state, hands them to the transport outside any transaction, then marks them published, in batches.
//!
//! A crash between send and mark, or a mark that fails, costs a second send once the claim on the row has run out; the inbox drops it. A row that cannot be
//! sent is put off, longer each time, and never stands before others.

use super::{core::Core, others::Others, outage::Outage, transport::SendError};
use crate::{
    base::{chain::chain, metrics},
    domain::{envelope::Envelope, failure, ids::MessageId, time::Timestamp},
    store::{
        self,
        outbox::{self, Outgoing, RelayClaim},
    },
};
use futures::FutureExt as _;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Mutex, Notify, mpsc};

/// How long a claim on a row lasts: longer than sending ever takes, short enough that a dead relay's rows go soon.
pub(super) const CLAIM: Duration = Duration::from_secs(5);
/// The poll that stands behind every hint.
const POLL: Duration = Duration::from_secs(1);
const BATCH: usize = 256;
/// Marks wait this long for company: a mark is worth no commit of its own, and a claim lasts much longer.
const MARKS_TOGETHER: Duration = Duration::from_millis(20);
/// An unsendable row waits this long the first time, doubling up to `LONGEST_BACK_OFF`.
const FIRST_BACK_OFF: Duration = Duration::from_secs(2);
const LONGEST_BACK_OFF: Duration = Duration::from_hours(1);

/// Where others of the process reach the relay; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Handover {
    rows: mpsc::Sender<Outgoing>,
    hint: Arc<Notify>,
    others: Others,
}

impl Handover {
    pub(super) fn new(others: Others) -> (Self, mpsc::Receiver<Outgoing>) {
        let (rows, handed) = mpsc::channel(BATCH);
        (Self { rows, hint: Arc::new(Notify::new()), others }, handed)
    }

    /// The claim on a row that its writer will hand over after the commit; `None` if the relay has no room, and is to find the row by itself.
    pub(super) fn claim(&self, core: &Core, now: Timestamp) -> Option<RelayClaim> {
        (core.transport.room() > self.waiting() && self.rows.capacity() > 0)
            .then(|| RelayClaim { token: core.entropy.id(now), until: now + CLAIM })
    }

    /// Hands over a message that was stored under [`Handover::claim`]. If there is no room after all, its claim runs out and it is found.
    pub(super) fn hand(&self, envelope: &Envelope) {
        let Envelope { message_id, task_id, .. } = *envelope;
        let _ = self.rows.try_send(Outgoing { message_id, task_id, payload: envelope.to_json(), send_attempts: 0 });
    }

    /// How many rows are handed over and not yet sent.
    fn waiting(&self) -> usize {
        self.rows.max_capacity() - self.rows.capacity()
    }

    /// There may be something to do earlier than relays think, ours and those of other processes. After the commit.
    pub(super) fn hint(&self) {
        self.hint.notify_one();
        self.others.due();
    }

    /// Another process says so.
    pub(super) fn hinted(&self) {
        self.hint.notify_one();
    }
}

pub(super) struct Relay {
    core: Arc<Core>,
    handed: Mutex<mpsc::Receiver<Outgoing>>,
    /// Sent, to be marked.
    sent: mpsc::UnboundedSender<MessageId>,
    to_mark: Mutex<mpsc::UnboundedReceiver<MessageId>>,
}

/// What a tick found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticked {
    pub(super) claimed: usize,
    /// It took as much as it could: there may be more.
    pub(super) more: bool,
    /// When the next row becomes available.
    pub(super) next_due: Option<Timestamp>,
}

impl Relay {
    pub(super) fn new(core: Arc<Core>, handed: mpsc::Receiver<Outgoing>) -> Self {
        let (sent, to_mark) = mpsc::unbounded_channel();
        Self { core, handed: Mutex::new(handed), sent, to_mark: Mutex::new(to_mark) }
    }

    pub(super) async fn run(self: Arc<Self>) {
        let core = &self.core;
        let mut handed = self.handed.lock().await;
        let mut rows = Vec::new();
        let mut outage = Outage::default();
        loop {
            let wait = match self.tick().await {
                Ok(ticked) => {
                    outage.over();
                    self.until_next(ticked)
                }
                Err(error) => outage.note(core, "relay", &error),
            };
            let wake = core.clock.monotonic() + wait;
            // Handed rows are sent at once and do not end the wait: the table is looked at when it is time or somebody says so.
            loop {
                let room = core.transport.room().min(BATCH);
                tokio::select! {
                    () = core.shutdown.soft().cancelled() => return,
                    // No more than there is room for: what is refused now waits until its claim has run out.
                    count = handed.recv_many(&mut rows, room), if room > 0 => {
                        if count > 0 {
                            self.send(std::mem::take(&mut rows)).await;
                        }
                    }
                    () = core.handover.hint.notified() => break,
                    () = core.clock.sleep_until(wake) => break,
                }
            }
            // A full transport is waited for here, so that nothing is claimed which cannot be sent.
            tokio::select! {
                () = core.transport.has_room() => {}
                () = core.shutdown.soft().cancelled() => return,
            }
        }
    }

    fn until_next(&self, ticked: Ticked) -> Duration {
        if ticked.more {
            return Duration::ZERO;
        }
        let poll = self.core.jittered(POLL, 0.2);
        ticked.next_due.map_or(poll, |due| poll.min(due.since(self.core.clock.now())))
    }

    /// Claims and sends what is due, as much as the transport has room for; marking is [`Relay::mark_tick`]'s.
    ///
    /// # Errors
    /// When rows could not be claimed.
    pub(super) async fn tick(&self) -> store::Result<Ticked> {
        // What is handed over already goes first.
        let limit = self.core.transport.room().saturating_sub(self.core.handover.waiting()).min(BATCH);
        if limit == 0 {
            return Ok(Ticked::default());
        }
        let now = self.core.clock.now();
        let claim = RelayClaim { token: self.core.entropy.id(now), until: now + CLAIM };
        let work = store::work(move |tx| {
            async move { Ok((outbox::claim_due(tx, claim, now, limit).await?, outbox::next_due(tx, now).await?)) }.boxed()
        });
        let (rows, next_due) = self.core.db.transaction("relay_claim", work).await?;
        let claimed = rows.len();
        self.send(rows).await;
        Ok(Ticked { claimed, more: claimed == limit, next_due })
    }

    /// Sends the rows that have been handed over so far.
    pub(super) async fn send_handed(&self) {
        let mut handed = self.handed.lock().await;
        let mut rows = Vec::new();
        let room = self.core.transport.room();
        while rows.len() < room
            && let Ok(row) = handed.try_recv()
        {
            rows.push(row);
        }
        drop(handed);
        self.send(rows).await;
    }

    async fn send(&self, rows: Vec<Outgoing>) {
        if rows.is_empty() {
            return;
        }
        let transport = &self.core.transport;
        let answers = transport.send(&rows).await;
        for (row, answer) in rows.into_iter().zip(answers) {
            match answer {
                Ok(()) => {
                    metrics::RELAY_PUBLISHED.increment(&[transport.name()]);
                    // The receiver lives in self.
                    let _ = self.sent.send(row.message_id);
                }
                // Its claim runs out, then it is tried again.
                Err(SendError::Unavailable(reason)) => {
                    tracing::debug!(messageId = %row.message_id, taskId = %row.task_id, reason, "not sent now");
                }
                Err(SendError::Unsendable(reason)) => self.back_off(row, reason).await,
            }
        }
    }

    async fn back_off(&self, row: Outgoing, reason: String) {
        let wait = FIRST_BACK_OFF.saturating_mul(2_u32.saturating_pow(row.send_attempts)).min(LONGEST_BACK_OFF);
        tracing::warn!(
            messageId = %row.message_id, taskId = %row.task_id, reason, sendAttempts = row.send_attempts + 1,
            "a message cannot be sent and is put off"
        );
        let until = self.core.clock.now() + wait;
        let reason: Arc<str> = failure::clean(&reason).into();
        let work = store::work(move |tx| {
            let reason = Arc::clone(&reason);
            async move { outbox::back_off(tx, row.message_id, &reason, until).await }.boxed()
        });
        if let Err(error) = self.core.db.transaction("relay_back_off", work).await {
            // Its claim runs out and it is tried, and put off, again.
            tracing::debug!(error = chain(&error), messageId = %row.message_id, "not put off");
        }
    }

    /// Marks what was sent, in batches, until the process drains.
    pub(super) async fn run_marks(self: Arc<Self>) {
        loop {
            let mut to_mark = self.to_mark.lock().await;
            let mut ids = Vec::new();
            tokio::select! {
                () = self.core.shutdown.soft().cancelled() => break,
                _ = to_mark.recv_many(&mut ids, BATCH) => {}
            }
            if ids.len() < BATCH {
                tokio::select! {
                    () = self.core.shutdown.soft().cancelled() => {}
                    () = self.core.clock.sleep(MARKS_TOGETHER) => {}
                }
                while ids.len() < BATCH
                    && let Ok(id) = to_mark.try_recv()
                {
                    ids.push(id);
                }
            }
            drop(to_mark);
            self.mark(ids).await;
        }
        self.mark_tick().await;
    }

    /// Marks what has been sent so far.
    pub(super) async fn mark_tick(&self) {
        let mut to_mark = self.to_mark.lock().await;
        let mut ids = Vec::new();
        while let Ok(id) = to_mark.try_recv() {
            ids.push(id);
        }
        drop(to_mark);
        self.mark(ids).await;
    }

    async fn mark(&self, ids: Vec<MessageId>) {
        if ids.is_empty() {
            return;
        }
        let now = self.core.clock.now();
        let ids: Arc<[_]> = ids.into();
        let work = store::work(move |tx| {
            let ids = Arc::clone(&ids);
            async move { outbox::mark_published(tx, &ids, now).await }.boxed()
        });
        if let Err(error) = self.core.db.transaction("relay_mark", work).await {
            // Not tried again: the rows' claims run out, they are sent a second time, and the inbox drops that.
            tracing::info!(error = chain(&error), "sent messages are not marked and will be sent again");
        }
    }
}
