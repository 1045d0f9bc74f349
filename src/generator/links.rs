//! Objects that an agenda links to: questions listed by reference, and what OParl and Legistar keep at addresses of their own.
//!
//! Each is a step by itself, so that an attempt after a crash asks only for what is missing. What comes with a revision is known for good under it; what comes
//! with an ETag is asked for again by every new task and sent again only if it changed; the rest is read anew by each round of each task.

use super::{
    Halt, Journal, Meter,
    files::FileRoom,
    format::json_text,
    snapshot::step_key,
    source::{Address, LinkError, Linked},
};
use crate::{
    domain::{
        agenda::Language,
        failure::{Failure, FailureCode, Fault},
        task::Phase,
    },
    engine::executor::Step,
};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// Fetches for one round of collecting.
#[derive(Debug)]
pub struct Links<'a> {
    pub room: FileRoom<'a>,
    /// Where the agenda lies: relative links are resolved against it.
    pub address: &'a Address,
    /// Names this task and the state of the agenda that it works on.
    pub round: &'a str,
    pub journal: &'a Journal<'a>,
    pub meter: &'a Meter,
    /// Requests that were made of another service.
    requests: AtomicUsize,
    wanted: AtomicUsize,
    /// What all objects together may still come to.
    room_left: AtomicU64,
    language: Language,
}

/// One object that is wanted.
#[derive(Debug, Clone)]
pub struct Link {
    pub href: String,
    /// Changes whenever the object does, if whoever lists it says so.
    pub revision: Option<String>,
    /// Where the link stands in the agenda.
    pub pointer: String,
}

/// Why there is no object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoObject {
    /// This source may not follow the link.
    Refused(String),
    /// There is nothing at its address.
    Missing(String),
    /// It is no JSON.
    Unreadable(String),
}

/// A step's output.
#[derive(Debug, Serialize, Deserialize)]
struct Output {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The round in which it was last looked at.
    round: String,
    object: Value,
}

enum Fetched {
    Object(Output),
    None(NoObject),
    Unavailable(Fault),
}

/// All objects of one agenda together are no larger; the agenda itself may be as large again.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// A question may have a vote, a roll call and a few files at addresses of their own.
const MAX_PER_QUESTION: usize = 8;
/// After so many that their holder could not give, the rest is not tried.
const MAX_UNAVAILABLE: usize = 3;

impl<'a> Links<'a> {
    #[must_use]
    pub fn new(
        room: FileRoom<'a>,
        address: &'a Address,
        round: &'a str,
        language: Language,
        journal: &'a Journal<'a>,
        meter: &'a Meter,
    ) -> Self {
        Self {
            room,
            address,
            round,
            journal,
            meter,
            requests: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            room_left: AtomicU64::new(MAX_BYTES),
            language,
        }
    }

    /// How many objects were wanted so far.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.wanted.load(Relaxed)
    }

    /// How many requests were made of another service.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Gets objects, in the order in which they are wanted; the same address twice is fetched once.
    ///
    /// # Errors
    /// `agenda-source-unavailable` naming those that could not be had now, `agenda-too-large`.
    pub async fn fetch(&self, wanted: Vec<Link>) -> Result<Vec<Result<Value, NoObject>>, Halt> {
        let total = self.wanted.fetch_add(wanted.len(), Relaxed) + wanted.len();
        let most = MAX_PER_QUESTION * self.room.settings.max_questions.max(1);
        if total > most {
            let detail =
                format!("it links to {total} objects; at generator.max_questions = {} it may be {most}", self.room.settings.max_questions);
            return Err(Failure::new(FailureCode::AgendaTooLarge, "The agenda is over a limit.").with_detail(detail).into());
        }
        let keys: Vec<String> = wanted.iter().map(|link| self.key_of(link)).collect();
        let known = self.journal.known(keys.clone()).await?;
        let mut there: HashMap<String, Result<Value, NoObject>> = HashMap::new();
        let mut missing = Vec::new();
        let mut named = HashSet::new();
        for (link, key) in wanted.iter().zip(&keys) {
            if !named.insert(key) {
                continue;
            }
            match known.get(key).and_then(|output| serde_json::from_str::<Output>(output).ok()) {
                Some(output) if link.revision.is_some() || output.round == self.round => drop(there.insert(key.clone(), Ok(output.object))),
                before => missing.push((link.clone(), key.clone(), before.filter(|before| before.etag.is_some()))),
            }
        }
        self.meter.expect(named.len());
        self.journal.progress(Phase::Collect, self.meter.add(there.len())).await?;

        let fetches = stream::iter(missing).map(|(link, key, before)| async move {
            let fetched = self.one(&link, before).await;
            (key, fetched)
        });
        let mut finished_together = fetches.buffer_unordered(self.room.settings.concurrency).ready_chunks(32);
        let mut unavailable = Vec::new();
        while let Some(batch) = finished_together.next().await {
            let done = batch.len();
            let mut steps = Vec::new();
            for (key, fetched) in batch {
                match fetched? {
                    Fetched::Object(output) => {
                        steps.push(Step {
                            name: format!("COLLECT/link/{}", &key[..16]),
                            key: key.clone(),
                            output: json!(output).to_string(),
                        });
                        there.insert(key, Ok(output.object));
                    }
                    Fetched::None(reason) => drop(there.insert(key, Err(reason))),
                    Fetched::Unavailable(fault) => unavailable.push(fault),
                }
            }
            self.journal.done(Phase::Collect, self.meter.add(done), steps).await?;
            if unavailable.len() >= MAX_UNAVAILABLE {
                break;
            }
        }
        if let Some(first) = unavailable.first() {
            let detail = first.detail.clone();
            let failure = Failure::new(FailureCode::AgendaSourceUnavailable, "Something that the agenda links to could not be fetched.");
            return Err(failure.with_detail(detail).with_errors(unavailable).into());
        }
        let object = |key| there.get(key).cloned().unwrap_or_else(|| Err(NoObject::Missing("nothing came".to_owned())));
        Ok(keys.iter().map(object).collect())
    }

    async fn one(&self, link: &Link, before: Option<Output>) -> Result<Fetched, Halt> {
        self.requests.fetch_add(1, Relaxed);
        let unavailable =
            |code: &str, detail: String| Ok(Fetched::Unavailable(Fault { code: code.to_owned(), pointer: link.pointer.clone(), detail }));
        let etag = before.as_ref().and_then(|before| before.etag.as_deref());
        let left = self.room_left.load(Relaxed);
        let (bytes, etag) = match self.room.source.read_linked(self.address, &link.href, etag, left, self.room.outside).await {
            Ok(Linked::Unchanged) => {
                let unchanged = before.map(|before| Fetched::Object(Output { round: self.round.to_owned(), ..before }));
                return Ok(unchanged.unwrap_or_else(|| Fetched::None(NoObject::Unreadable("its holder has nothing to say".to_owned()))));
            }
            Ok(Linked::TooLarge) => {
                let limit = format!("all that an agenda links to may be {MAX_BYTES} bytes");
                return Err(Failure::new(FailureCode::AgendaTooLarge, "The agenda is over a limit.").with_detail(limit).into());
            }
            Ok(Linked::Object { bytes, etag }) => (bytes, etag),
            Err(LinkError::Refused(reason)) => return Ok(Fetched::None(NoObject::Refused(reason))),
            Err(LinkError::Missing(reason)) => return Ok(Fetched::None(NoObject::Missing(reason))),
            Err(LinkError::Unavailable(reason)) => return unavailable("link-unavailable", reason),
            Err(LinkError::TooSlow(reason)) => return unavailable("link-too-slow", reason),
        };
        let taken = bytes.len() as u64;
        // Those on their way at the same time may go over it together, by no more than each of them may.
        let _ = self.room_left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(taken)));
        Ok(match json_text::parse(&bytes, self.language) {
            Ok(object) => Fetched::Object(Output { etag, round: self.round.to_owned(), object }),
            Err(fault) => Fetched::None(NoObject::Unreadable(fault.detail)),
        })
    }

    fn key_of(&self, link: &Link) -> String {
        let place = self.address.resolve(&link.href);
        step_key(&["link", &self.room.source.name(), &place, link.revision.as_deref().unwrap_or("")])
    }
}
