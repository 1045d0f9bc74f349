//! The engine as the floors above see it.

use super::{
    Hub, Submission, SubmitError, Submitted, cancel,
    consumer::Consumer,
    core::{Core, Parts, Pending},
    dismiss,
    endings::Endings,
    events::{Change, Courier, Feed, Follow, Follower, Placer, SubscriptionError, callback_secret, deliveries, subscriptions},
    gauges::Gauges,
    janitor::Janitor,
    keeper::Keeper,
    leases::Leases,
    listener::Listener,
    others::Others,
    outage::Complaints,
    pause::{self, Pause},
    relay::{Handover, Relay},
    replay, replay_many,
    rescuer::Rescuer,
    submit,
    timekeeper::Timekeeper,
};
use crate::{
    base::{shutdown::Shutdown, supervisor},
    domain::{
        audit::{Author, Entry},
        cursor::{Cursor, Page},
        dead_letter::DeadLetter,
        delivery::{Delivery, Sink, Tried, WebhookSecret},
        event::EventType,
        ids::{DeadLetterId, DeliveryId, EventId, SubscriptionId, TaskId, WorkerId},
        task::{Attempt, Kind, Phase, Task},
    },
    store::{self, Tx, attempt, audit, checkpoint, dead_letter, event, outbox, subscription, task},
};
use futures::{FutureExt as _, future::BoxFuture};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{Notify, Semaphore, mpsc};

pub use super::{
    dismiss::Dismissed,
    pause::Paused,
    replay_many::{ReplayMany, ReplayedMany, Skipped},
};
pub use crate::store::{
    audit::AuditFilter, checkpoint::Checkpoint, dead_letter::DeadLetterFilter, delivery::DeliveryFilter, event::Event, outbox::Message,
    subscription::Subscription, task::TaskFilter,
};

/// What commits together with a submission (the bridge's ledger), given the task that it led to.
pub type SubmitEffect = Arc<dyn for<'t> Fn(&'t mut Tx<'_>, &Submitted) -> BoxFuture<'t, store::Result<()>> + Send + Sync>;

/// Makes a [`SubmitEffect`] of a closure: its type alone does not say that the future borrows the transaction.
pub fn submit_effect<F>(effect: F) -> SubmitEffect
where
    F: for<'t> Fn(&'t mut Tx<'_>, &Submitted) -> BoxFuture<'t, store::Result<()>> + Send + Sync + 'static,
{
    Arc::new(effect)
}

/// The engine; cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Core>);

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("worker_id", &self.0.worker_id).finish_non_exhaustive()
    }
}

/// What came of asking for a cancel.
#[derive(Debug, Clone)]
pub enum Cancelled {
    Now(Task),
    Before(Task),
    /// It had completed or failed.
    AlreadyFinished(Task),
    Unknown,
}

/// What came of asking for a replay.
#[derive(Debug, Clone)]
pub enum Replayed {
    Queued(Box<Task>),
    AlreadyReplayed,
    /// Another task of the agenda is active.
    AgendaBusy(TaskId),
    Unknown,
}

impl Engine {
    /// Starts every loop; they end with `shutdown`: *soft* stops claiming and gives running attempts their grace, *hard* stops at once. The hub's loop ends when
    /// nobody waits any more, or with [`Hub::drain`].
    #[must_use]
    pub fn start(parts: Parts, shutdown: &Shutdown) -> Self {
        let lease_store = parts.lease_store.clone();
        let (engine, core, handed) = Self::at_rest(parts, shutdown);

        let relay = Arc::new(Relay::new(Arc::clone(&core), handed));
        let marks = Arc::clone(&relay);
        spawn(&core, "relay", move |_| Arc::clone(&relay).run());
        spawn(&core, "relay marks", move |_| Arc::clone(&marks).run_marks());
        spawn(&core, "consumer", |core| Consumer::new(core).run());
        match lease_store {
            Some(options) => spawn(&core, "lease keeper", move |core| Keeper::run_apart(core, options.clone())),
            None => spawn(&core, "lease keeper", |core| Keeper::shared(core).run()),
        }
        spawn(&core, "listener", |core| Listener::new(core).run());
        spawn(&core, "timekeeper", |core| Timekeeper::new(core).run());
        spawn(&core, "rescuer", |core| Rescuer::new(core).run());
        spawn(&core, "completion hub", |core| core.hub.clone().run(core.shutdown.clone()));
        spawn(&core, "event placer", |core| Placer::new(core).run());
        spawn(&core, "event feed", Feed::run);
        let courier = Courier::new(Arc::clone(&core)).expect("a client without anything special can be built once TLS is there");
        let courier = Arc::new(courier);
        let noting = Arc::clone(&courier);
        spawn(&core, "courier", move |_| Arc::clone(&courier).run());
        spawn(&core, "courier notes", move |_| Arc::clone(&noting).run_notes());
        spawn(&core, "janitor", |core| Janitor::new(core).run());
        spawn(&core, "gauges", |core| Gauges::new(core).run());
        engine
    }

    /// Everything made, nothing running.
    pub(super) fn at_rest(parts: Parts, shutdown: &Shutdown) -> (Self, Arc<Core>, mpsc::Receiver<outbox::Outgoing>) {
        let others = Others::default();
        let (handover, handed) = Handover::new(others.clone());
        let complaints = Complaints::new(parts.clock.clone());
        let worker_id: WorkerId = parts.entropy.id(parts.clock.now());
        let core = Core {
            hub: Hub::new(parts.db.clone(), parts.clock.clone(), parts.poll_interval, others.clone(), complaints.clone()),
            permits: Arc::new(Semaphore::new(parts.config.max_running)),
            config: parts.config,
            grace: parts.grace,
            db: parts.db,
            clock: parts.clock,
            entropy: parts.entropy,
            executors: parts.executors,
            transport: parts.transport,
            handover,
            others,
            complaints,
            leases: Leases::default(),
            endings: Endings::default(),
            feed: Feed::default(),
            deliver: Arc::new(Notify::new()),
            telling: parts.telling,
            pending: Pending::default(),
            pause: Pause::default(),
            disk: parts.disk,
            shutdown: shutdown.clone(),
            worker_id,
        };
        let core = Arc::new(core);
        (Self(Arc::clone(&core)), core, handed)
    }

    /// Whether tasks of this kind have an executor here; work of a kind without one is to be refused at the door.
    #[must_use]
    pub fn supports(&self, kind: Kind) -> bool {
        self.0.executors.contains_key(&kind)
    }

    /// This process as a worker: random per start.
    #[must_use]
    pub fn worker_id(&self) -> WorkerId {
        self.0.worker_id
    }

    /// Accepts work: exactly once per idempotency key and, while it is active, once per agenda.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing was accepted then, unless the store says that a commit's outcome is unknown: asking again is safe.
    pub async fn submit(&self, submission: Submission, effect: Option<SubmitEffect>) -> Result<Submitted, SubmitError> {
        submit::submit(&self.0, submission, effect).await
    }

    /// # Errors
    /// When the store cannot be read.
    pub async fn task(&self, id: TaskId) -> store::Result<Option<Task>> {
        self.0.db.read("task", move |tx: &mut Tx<'_>| async move { task::find(tx, id).await }.boxed()).await
    }

    /// The task's claims, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn attempts(&self, id: TaskId) -> store::Result<Vec<Attempt>> {
        self.0.db.read("attempts", move |tx: &mut Tx<'_>| async move { attempt::of_task(tx, id).await }.boxed()).await
    }

    /// The steps that the task has done, in that order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn steps(&self, id: TaskId) -> store::Result<Vec<Checkpoint>> {
        self.0.db.read("attempts", move |tx: &mut Tx<'_>| async move { checkpoint::of_task(tx, id).await }.boxed()).await
    }

    /// The task's messages, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn messages(&self, id: TaskId) -> store::Result<Vec<Message>> {
        self.0.db.read("messages", move |tx: &mut Tx<'_>| async move { outbox::of_task(tx, id).await }.boxed()).await
    }

    /// Newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn tasks(&self, filter: TaskFilter, cursor: Option<Cursor>, limit: usize) -> store::Result<Page<Task>> {
        let work = store::work(move |tx| {
            let filter = filter.clone();
            async move { task::list(tx, &filter, cursor, limit + 1).await }.boxed()
        });
        let tasks = self.0.db.read("tasks", work).await?;
        Ok(Page::from_rows(tasks, limit, |task| Cursor { at: task.created_at, id: task.id.0 }))
    }

    /// Cancels a task that has not ended; its executor is stopped.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn cancel(&self, id: TaskId, author: &Author) -> store::Result<Cancelled> {
        cancel::cancel(&self.0, id, author).await
    }

    /// Newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn dead_letters(&self, filter: DeadLetterFilter, cursor: Option<Cursor>, limit: usize) -> store::Result<Page<DeadLetter>> {
        let work = store::work(move |tx| {
            let filter = filter.clone();
            async move { dead_letter::list(tx, &filter, cursor, limit + 1).await }.boxed()
        });
        let letters = self.0.db.read("dead_letters", work).await?;
        Ok(Page::from_rows(letters, limit, |letter| Cursor { at: letter.failed_at, id: letter.id.0 }))
    }

    /// Puts a failed task back into the queue with its attempts reset; `from_phase` forgets that phase's steps and the later ones.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn replay(&self, id: DeadLetterId, from_phase: Option<Phase>, author: &Author) -> store::Result<Replayed> {
        replay::replay(&self.0, id, from_phase, author).await
    }

    /// Replays the open dead letters that match, newest first and one by one; bounded, with a place to go on from.
    ///
    /// # Errors
    /// When the store cannot be used; what was replayed until then is replayed, and asking again goes on with the rest.
    pub async fn replay_many(&self, ask: &ReplayMany, author: &Author) -> store::Result<ReplayedMany> {
        replay_many::replay_many(&self.0, ask, author).await
    }

    /// Closes a dead letter without a replay; its task stays FAILED.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn dismiss(&self, id: DeadLetterId, author: &Author) -> store::Result<Dismissed> {
        dismiss::dismiss(&self.0, id, author).await
    }

    /// Stops claiming on every replica, now and over restarts, until [`Engine::resume`]; what runs goes on. Answers since when it is so.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn pause(&self, author: &Author) -> store::Result<Paused> {
        pause::pause(&self.0, author).await
    }

    /// Claiming goes on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn resume(&self, author: &Author) -> store::Result<()> {
        pause::resume(&self.0, author).await
    }

    /// Whether claiming is paused, as this process knows: it looks every few seconds.
    #[must_use]
    pub fn paused(&self) -> Option<Paused> {
        self.0.pause.state()
    }

    /// What was done by hand, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn audit(&self, filter: AuditFilter, cursor: Option<Cursor>, limit: usize) -> store::Result<Page<Entry>> {
        let work = store::work(move |tx| {
            let filter = filter.clone();
            async move { audit::list(tx, &filter, cursor, limit + 1).await }.boxed()
        });
        let entries = self.0.db.read("audit", work).await?;
        Ok(Page::from_rows(entries, limit, |entry| Cursor { at: entry.at, id: entry.id.0 }))
    }

    /// Follows events in the order of their positions.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn follow(&self, follow: Follow) -> store::Result<Follower> {
        let Core { db, clock, feed, .. } = &*self.0;
        Follower::begin(db.clone(), clock.clone(), feed, follow).await
    }

    /// # Errors
    /// When the store cannot be read.
    pub async fn event(&self, id: EventId) -> store::Result<Option<Event>> {
        self.0.db.read("events", move |tx: &mut Tx<'_>| async move { event::find(tx, id).await }.boxed()).await
    }

    /// Brings the subscriptions of the configuration up to date; once, at start.
    ///
    /// # Errors
    /// When their secrets cannot be kept, or the store cannot be written.
    pub async fn configure_subscriptions(&self) -> Result<(), SubscriptionError> {
        subscriptions::configure(&self.0).await
    }

    /// Oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn subscriptions(&self) -> store::Result<Vec<Subscription>> {
        self.0.db.read("subscriptions", |tx: &mut Tx<'_>| subscription::list(tx).boxed()).await
    }

    /// Has a webhook told about what happens from now on; its secret is handed out this once.
    ///
    /// # Errors
    /// See [`SubscriptionError`].
    pub async fn subscribe(
        &self,
        url: String,
        types: Vec<EventType>,
        author: &Author,
    ) -> Result<(Subscription, WebhookSecret), SubscriptionError> {
        subscriptions::create(&self.0, url, types, author).await
    }

    /// # Errors
    /// See [`SubscriptionError`].
    pub async fn update_subscription(
        &self,
        id: SubscriptionId,
        change: Change,
        author: &Author,
    ) -> Result<Subscription, SubscriptionError> {
        subscriptions::update(&self.0, id, change, author).await
    }

    /// # Errors
    /// See [`SubscriptionError`].
    pub async fn unsubscribe(&self, id: SubscriptionId, author: &Author) -> Result<(), SubscriptionError> {
        subscriptions::delete(&self.0, id, author).await
    }

    /// A new secret; the one before signs as well for `overlap`.
    ///
    /// # Errors
    /// See [`SubscriptionError`].
    pub async fn rotate_secret(
        &self,
        id: SubscriptionId,
        overlap: Duration,
        author: &Author,
    ) -> Result<(Subscription, WebhookSecret), SubscriptionError> {
        subscriptions::rotate(&self.0, id, overlap, author).await
    }

    /// Sends a test event and says how that went.
    ///
    /// # Errors
    /// See [`SubscriptionError`].
    pub async fn ping_subscription(&self, id: SubscriptionId) -> Result<Tried, SubscriptionError> {
        subscriptions::ping(&self.0, id).await
    }

    /// Looks whether a callback's address would be told anything.
    ///
    /// # Errors
    /// Why not.
    pub async fn check_callback(&self, url: &str) -> Result<(), SubscriptionError> {
        if self.0.telling.key.is_none() {
            return Err(SubscriptionError::NoKey);
        }
        subscriptions::look(&self.0, url).await
    }

    /// What signs the callbacks that this caller names.
    ///
    /// # Errors
    /// When there is no key to make it from.
    pub fn callback_secret(&self, caller: &str) -> Result<WebhookSecret, SubscriptionError> {
        self.0.telling.key.as_ref().map(|key| callback_secret(key, caller)).ok_or(SubscriptionError::NoKey)
    }

    /// Newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn deliveries(&self, filter: DeliveryFilter, cursor: Option<Cursor>, limit: usize) -> store::Result<Page<Delivery>> {
        deliveries::list(&self.0, filter, cursor, limit).await
    }

    /// Begins a delivery anew; `None`: there is none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn resend(&self, id: DeliveryId, author: &Author) -> store::Result<Option<Delivery>> {
        deliveries::resend(&self.0, id, author).await
    }

    /// Begins every delivery anew that was given up, of one sink or of all; answers how many.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn resend_failed(&self, sink: Option<Sink>, author: &Author) -> store::Result<u64> {
        deliveries::resend_failed(&self.0, sink, author).await
    }

    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.0.hub
    }
}

/// Runs a loop in the background, supervised.
fn spawn<F>(core: &Arc<Core>, name: &'static str, start: impl Fn(Arc<Core>) -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let shared = Arc::clone(core);
    supervisor::spawn(&core.clock, &core.shutdown, name, move || start(Arc::clone(&shared)));
}
