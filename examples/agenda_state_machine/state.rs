//! What the state machine knows, and the one file it is kept in.
//!
//! A change is read, made and written under a lock, to a temporary file that then takes the old one's place: after a `kill -9` the file is the old or the new one,
//! never half of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
};

const REPORT_SIGNED: &str = "REPORT_SIGNED";
const PROTECTED: &str = "PROTECTED";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct State {
    pub agendas: BTreeMap<String, Agenda>,
    /// What the bridge has told, by the event's id: an id that is here already is a duplicate.
    #[serde(default)]
    pub inbox: BTreeMap<String, Told>,
}

/// An event, as far as it matters here.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    pub kind: String,
    pub time: String,
    pub task_id: String,
    /// Our own key for this protocol: it is known before the 202, and so before the task's id.
    pub client_reference: Option<String>,
    /// Why there is no protocol.
    pub failure: Option<String>,
}

/// An agenda as our own service knows it, and how far its protocol is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Agenda {
    pub document: Value,
    /// How many protocols were asked for; part of the idempotency key, so that each one has its own.
    #[serde(default)]
    pub rounds: u32,
    #[serde(default)]
    pub generation: Generation,
}

/// How far an agenda's protocol is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Generation {
    /// Nobody has asked for it.
    #[default]
    None,
    /// M2: written before the request, so that a repeat after a crash is the same request.
    Submitting {
        key: String,
    },
    /// The task is known; what is left is to poll.
    Running {
        task_id: String,
    },
    Done {
        task_id: String,
        protocol_id: String,
        version: u64,
    },
    Failed {
        task_id: Option<String>,
        problem: String,
        detail: String,
    },
}

impl Agenda {
    /// The trigger: every question's report is signed, and there is no protocol yet. A failure is tried again by the next run.
    pub fn is_triggered(&self) -> bool {
        let statuses: Vec<&str> = self.questions().map(|question| question["status"].as_str().unwrap_or_default()).collect();
        let all_signed = !statuses.is_empty() && statuses.iter().all(|status| matches!(*status, REPORT_SIGNED | PROTECTED));
        all_signed && !matches!(self.generation, Generation::Done { .. })
    }

    /// The protocol is there: REPORT_SIGNED → PROTECTED.
    pub fn protect(&mut self) {
        for question in self.document["questions"].as_array_mut().into_iter().flatten() {
            if question["status"] == REPORT_SIGNED {
                question["status"] = PROTECTED.into();
            }
        }
    }

    fn questions(&self) -> impl Iterator<Item = &Value> {
        self.document["questions"].as_array().into_iter().flatten()
    }
}

impl State {
    /// Takes an agenda; one with the same id is replaced, and its protocol will be made anew.
    pub fn add(&mut self, document: Value) -> Result<(), String> {
        let id = document["agendaId"].as_str().ok_or("the agenda has no agendaId")?.to_owned();
        let rounds = self.agendas.get(&id).map_or(0, |agenda| agenda.rounds);
        self.agendas.insert(id, Agenda { document, rounds, generation: Generation::None });
        Ok(())
    }

    /// Takes an event; `false`: it was there. A test ping is nothing to be kept.
    pub fn take(&mut self, event: &Value) -> Result<bool, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let id = text(&event["id"]).ok_or("an event without id")?;
        let Some(task_id) = text(&event["data"]["taskId"]) else { return Ok(true) };
        let told = Told {
            kind: text(&event["type"]).ok_or("an event without type")?,
            time: text(&event["time"]).unwrap_or_default(),
            task_id,
            client_reference: text(&event["data"]["clientReference"]),
            failure: text(&event["data"]["failure"]["code"]),
        };
        Ok(self.inbox.insert(id, told).is_none())
    }

    /// The newest event about the protocol that was asked for under `key`.
    pub fn told(&self, key: &str, task: &str) -> Option<&Told> {
        let ours = |told: &&Told| told.client_reference.as_deref() == Some(key) || told.task_id == task;
        self.inbox.values().filter(ours).max_by(|one, other| one.time.cmp(&other.time))
    }

    /// A question's report is signed.
    pub fn sign(&mut self, agenda: &str, question: &str) -> Result<(), String> {
        let agenda = self.agendas.get_mut(agenda).ok_or("there is no such agenda")?;
        let mut questions = agenda.document["questions"].as_array_mut().into_iter().flatten();
        let question = questions.find(|candidate| candidate["id"] == question).ok_or("there is no such question")?;
        if question["status"] == PROTECTED {
            return Err("the question is protected".to_owned());
        }
        question["status"] = REPORT_SIGNED.into();
        Ok(())
    }
}

/// The file.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Empty where there is no file yet.
    pub fn read(&self) -> io::Result<State> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::default()),
            Err(error) => Err(error),
        }
    }

    /// Changes the file as one step; whoever else changes it waits.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let lock = File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        let mut state = self.read()?;
        let result = change(&mut state);
        let temporary = self.path.with_extension("new");
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(&state)?)?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        Ok(result)
    }
}
