//! The courier: claims deliveries that are due, tries them, and notes how that went.
//!
//! Deliveries of one receiver form a lane, and each lane has places of its own: a receiver that hangs fills its own and delays nobody. One whose last try failed has a
//! single place until a try succeeds. Tries run outside any transaction; a crash before the note costs a second try of the same event once the claim has run out.

use super::{
    letter::{self, Letter},
    telling::ToStream,
    webhook::{Message, Sender},
};
use crate::{
    base::{chain::chain, metrics},
    domain::{
        delivery::{End, Next, Sink, Tried},
        event,
    },
    engine::{core::Core, outage::Outage},
    store::{
        self, IdList,
        delivery::{self, Settled},
        subscription,
    },
};
use futures::FutureExt as _;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

/// The poll that stands behind every hint.
const POLL: Duration = Duration::from_secs(1);
/// The most tries under way in this process.
const MOST: usize = 1024;
/// A stream takes many at once.
const STREAM_PLACES: usize = 256;
/// A claim outlives the try by so much: for reading, waiting for the database, and noting.
const CLAIM_SLACK: Duration = Duration::from_secs(30);
/// What becomes due, or gets a place, within this time shares a claim.
const SPACING: Duration = Duration::from_millis(10);
const BATCH: usize = 256;
/// How long tries may go on once the process drains.
const LAST_MOMENTS: Duration = Duration::from_secs(2);
/// Notes wait this long for company.
const TOGETHER: Duration = Duration::from_millis(5);

pub(in crate::engine) struct Courier {
    core: Arc<Core>,
    sender: Sender,
    lanes: Arc<Mutex<HashMap<String, Lane>>>,
    done: mpsc::UnboundedSender<Noted>,
    to_note: tokio::sync::Mutex<mpsc::UnboundedReceiver<Noted>>,
}

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    failing: bool,
}

/// A try that has ended, and what is to be written about it.
#[derive(Debug)]
struct Noted {
    settled: Settled,
    sink: Sink,
    gone: bool,
}

impl Courier {
    pub(in crate::engine) fn new(core: Arc<Core>) -> reqwest::Result<Self> {
        let sender = Sender::new(&core.telling, core.clock.clone())?;
        let (done, to_note) = mpsc::unbounded_channel();
        Ok(Self { core, sender, lanes: Arc::default(), done, to_note: tokio::sync::Mutex::new(to_note) })
    }

    pub(in crate::engine) async fn run(self: Arc<Self>) {
        let core = &self.core;
        let mut outage = Outage::default();
        loop {
            let wait = match self.tick().await {
                Ok(_) => {
                    outage.over();
                    core.jittered(POLL, 0.2)
                }
                Err(error) => outage.note(core, "courier", &error),
            };
            tokio::select! {
                () = core.deliver.notified() => core.clock.sleep(SPACING).await,
                () = core.clock.sleep(wait) => {}
                () = core.shutdown.soft().cancelled() => return,
            }
        }
    }

    /// Claims what is due and has a place, and begins the tries; answers how many.
    ///
    /// # Errors
    /// When the database is away.
    pub(in crate::engine) async fn tick(&self) -> store::Result<usize> {
        let core = &self.core;
        let now = core.clock.now();
        let look = store::work(move |tx| async move { delivery::due_lanes(tx, now).await }.boxed());
        let due = core.db.read("deliveries", look).await?;
        let places = self.places(due);
        if places.is_empty() {
            return Ok(0);
        }
        let token: Uuid = core.entropy.id(now);
        let until = now + core.telling.config.timeout * 2 + CLAIM_SLACK;
        let (places, key) = (Arc::new(places), core.telling.key.clone());
        let work = store::work(move |tx| {
            let (places, key) = (Arc::clone(&places), key.clone());
            async move {
                let mut ids = Vec::new();
                for (lane, free) in places.iter() {
                    ids.extend(delivery::claim(tx, lane, token, until, now, *free).await?);
                }
                let ids: IdList = ids.into_iter().collect();
                if ids.is_empty() { Ok(Vec::new()) } else { letter::read(tx, ids, key.as_ref(), now).await }
            }
            .boxed()
        });
        let letters = core.db.transaction("claim_deliveries", work).await?;
        let claimed = letters.len();
        for letter in letters {
            self.begin(letter, token);
        }
        Ok(claimed)
    }

    /// How many more tries each lane may begin.
    fn places(&self, due: Vec<String>) -> Vec<(String, usize)> {
        let mut lanes = self.lanes();
        // What is neither running nor due has nothing to be remembered for.
        let named: HashSet<&str> = due.iter().map(String::as_str).collect();
        lanes.retain(|name, lane| lane.running > 0 || named.contains(name.as_str()));
        let mut left = MOST.saturating_sub(lanes.values().map(|lane| lane.running).sum());
        let mut places = Vec::new();
        for name in due {
            let (running, failing) = lanes.get(&name).map_or((0, false), |lane| (lane.running, lane.failing));
            let most = if name == Sink::JetStream.to_string() {
                if self.core.telling.stream.as_ref().is_some_and(|stream| stream.is_up()) { STREAM_PLACES } else { 0 }
            } else if failing {
                1
            } else {
                self.core.telling.config.max_per_receiver
            };
            let free = most.saturating_sub(running).min(left);
            if free > 0 {
                left -= free;
                places.push((name, free));
            }
        }
        places
    }

    fn begin(&self, letter: Letter, token: Uuid) {
        self.lanes().entry(letter.lane.clone()).or_default().running += 1;
        let (core, sender, done) = (Arc::clone(&self.core), self.sender.clone(), self.done.clone());
        let place = Place { lanes: Arc::clone(&self.lanes), lane: letter.lane.clone(), deliver: Arc::clone(&self.core.deliver) };
        self.core.shutdown.spawn("delivery", async move {
            let draining = async {
                core.shutdown.soft().cancelled().await;
                core.clock.sleep(LAST_MOMENTS).await;
            };
            let tried = tokio::select! {
                tried = attempt(&core, &sender, &letter) => tried,
                // The claim runs out, and somebody tries it again.
                () = core.shutdown.hard().cancelled() => return,
                () = draining => return,
            };
            place.judge(&tried);
            // Nobody notes any more: the process stops.
            let _ = done.send(note(&core, &letter, token, tried));
            drop(place);
        });
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how tries ended, in batches, until the process has drained.
    pub(in crate::engine) async fn run_notes(self: Arc<Self>) {
        loop {
            let mut to_note = self.to_note.lock().await;
            let mut notes = Vec::new();
            tokio::select! {
                () = self.core.shutdown.hard().cancelled() => return,
                () = self.idle() => {
                    drop(to_note);
                    self.note_tick().await;
                    return;
                }
                _ = to_note.recv_many(&mut notes, BATCH) => {}
            }
            if notes.len() < BATCH {
                self.core.clock.sleep(TOGETHER).await;
                while notes.len() < BATCH
                    && let Ok(noted) = to_note.try_recv()
                {
                    notes.push(noted);
                }
            }
            drop(to_note);
            self.write(notes).await;
        }
    }

    /// Returns when the process drains and no try is under way.
    async fn idle(&self) {
        self.core.shutdown.soft().cancelled().await;
        while self.lanes().values().any(|lane| lane.running > 0) {
            self.core.clock.sleep(TOGETHER).await;
        }
    }

    /// Notes what has ended so far.
    pub(in crate::engine) async fn note_tick(&self) {
        let mut to_note = self.to_note.lock().await;
        let mut notes = Vec::new();
        while let Ok(noted) = to_note.try_recv() {
            notes.push(noted);
        }
        drop(to_note);
        self.write(notes).await;
    }

    /// How many tries are under way.
    pub(in crate::engine) fn running(&self) -> usize {
        self.lanes().values().map(|lane| lane.running).sum()
    }

    async fn write(&self, notes: Vec<Noted>) {
        if notes.is_empty() {
            return;
        }
        let notes = Arc::new(notes);
        let work = store::work(move |tx| {
            let notes = Arc::clone(&notes);
            async move {
                let settled: Vec<Settled> = notes.iter().map(|noted| noted.settled.clone()).collect();
                delivery::settle(tx, &settled).await?;
                let mut gone = Vec::new();
                for noted in notes.iter().filter(|noted| noted.gone) {
                    if let Sink::Subscription(id) = noted.sink
                        && subscription::disable(tx, id, noted.settled.at).await?
                    {
                        delivery::stop_lane(tx, &noted.sink.to_string(), "the receiver wants nothing more (HTTP 410)").await?;
                        gone.push(id);
                    }
                }
                Ok(gone)
            }
            .boxed()
        });
        match self.core.db.transaction("settle_deliveries", work).await {
            Ok(gone) => {
                for id in gone {
                    tracing::warn!(subscriptionId = %id, "a receiver answered 410 and is told nothing more");
                }
            }
            // Not noted again: the claims run out, and the events are told a second time under the same ids.
            Err(error) => tracing::info!(error = chain(&error), "how deliveries went is not noted, and they will be tried again"),
        }
    }
}

/// A try's place in its lane; free again when it is dropped, however the try ends.
struct Place {
    lanes: Arc<Mutex<HashMap<String, Lane>>>,
    lane: String,
    deliver: Arc<Notify>,
}

impl Place {
    fn judge(&self, tried: &Tried) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get_mut(&self.lane) {
            lane.failing = matches!(tried.end, End::Failed { .. } | End::Gone);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get_mut(&self.lane) {
            lane.running = lane.running.saturating_sub(1);
        }
        drop(lanes);
        self.deliver.notify_one();
    }
}

async fn attempt(core: &Core, sender: &Sender, letter: &Letter) -> Tried {
    let id = letter.event_id.to_string();
    if letter.sink == Sink::JetStream {
        return match &core.telling.stream {
            Some(stream) => {
                let body = event::carried(letter.event_id, &letter.body, event::LARGEST_BODY.min(stream.largest()));
                stream.send(ToStream { id: &id, event_type: letter.event_type.as_str(), body: &body }).await
            }
            None => Tried::failed("there is no stream here"),
        };
    }
    match &letter.target {
        Ok(target) => {
            let body = event::carried(letter.event_id, &letter.body, event::LARGEST_BODY);
            sender.send(Message { url: &target.url, id: &id, body, secrets: &target.secrets }).await
        }
        Err(tried) => tried.clone(),
    }
}

fn note(core: &Core, letter: &Letter, token: Uuid, tried: Tried) -> Noted {
    let now = core.clock.now();
    let attempts = letter.attempts.saturating_add(1);
    let next = tried.next(attempts, &core.telling.config.schedule, core.entropy.fraction(), now);
    let (outcome, next_at, delivered_at) = match next {
        Next::Done => ("delivered", None, Some(now)),
        Next::TryAt(at) => ("retried", Some(at), None),
        Next::GiveUp => ("given-up", None, None),
    };
    metrics::DELIVERIES.increment(&[letter.sink.kind(), outcome]);
    if next == Next::GiveUp {
        tracing::warn!(
            deliveryId = %letter.id, eventId = %letter.event_id, taskId = %letter.task_id, sink = %letter.sink, status = tried.status, attempts,
            "an event could not be delivered and is given up"
        );
    }
    let gone = tried.end == End::Gone;
    let settled = Settled { id: letter.id, token, status: tried.status, at: now, next_at, delivered_at };
    Noted { settled, sink: letter.sink.clone(), gone }
}
