//! What the callers of a simulation were told, and what was seen of each task: the evidence that has to agree with the database.

use crate::support::reconcile::Told;
use protocol_bridge::{
    domain::{ids::TaskId, task::Status},
    engine::{Engine, Submission, SubmitError, Submitted},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard},
};

/// What callers were told, and what was seen of each task.
#[derive(Default)]
pub struct Record {
    pub told: Told,
    pub seen: BTreeMap<TaskId, Seen>,
    pub fingerprints: HashMap<String, String>,
    pub wrong: Vec<String>,
}

#[derive(Default)]
pub struct Seen {
    pub revision: u64,
    /// The terminal status that it had, and how many replays had been answered by then.
    pub ended: Option<(Status, u32)>,
    pub replays_asked: u32,
    pub replays_answered: u32,
    pub first: bool,
}

impl Record {
    pub fn expect(&mut self, holds: bool, what: &str, found: &dyn Debug) {
        if !holds {
            self.wrong.push(format!("not {what}: {found:?}"));
        }
    }

    /// A terminal status is left by a replay only, and revisions only grow.
    pub fn see(&mut self, id: TaskId, found: Option<(u64, Status)>) {
        let Some((revision, status)) = found else {
            if self.told.accepted.contains(&id.to_string()) {
                self.wrong.push(format!("{id} was accepted and is not there"));
            }
            return;
        };
        let seen = self.seen.entry(id).or_default();
        if revision < seen.revision {
            self.wrong.push(format!("{id} went back from revision {} to {revision}", seen.revision));
        } else if let Some((ended, answered)) = seen.ended
            && status != ended
            && (ended != Status::Failed || seen.replays_asked <= answered)
        {
            self.wrong.push(format!("{id} was {ended} and is {status}, and nobody replayed it"));
        }
        seen.revision = revision;
        seen.ended = status.is_terminal().then_some((status, seen.replays_answered));
    }
}

pub fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().expect("nobody panics while it is held")
}

pub async fn submitted(engine: Engine, submission: Submission, key: Option<(String, String)>, record: Arc<Mutex<Record>>) {
    let answer = engine.submit(submission, None).await;
    let mut record = locked(&record);
    match answer {
        Ok(Submitted { task, joined }) => {
            record.told.accepted.insert(task.id.to_string());
            let seen = record.seen.entry(task.id).or_default();
            let twice_first = !joined && std::mem::replace(&mut seen.first, !joined);
            record.expect(!twice_first, "accepted as new once only", &task);
            if let Some((key, fingerprint)) = key {
                let known = record.fingerprints.entry(key.clone()).or_insert_with(|| fingerprint.clone());
                let same = *known == fingerprint;
                record.expect(same, "answered for the key's own content only", &task);
                record.told.keys.insert(("test".to_owned(), key, task.id.to_string()));
            }
        }
        Err(SubmitError::KeyReused | SubmitError::Overloaded(_)) => {}
        Err(SubmitError::Store(_)) => record.told.unknown += 1,
    }
}
