//! The state machine's loop: who is ready, which way to ask, and what an outcome does to the state.

use crate::{
    seconds,
    service::{Answer, Service},
    state::{Generation, Store},
};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::{error::Error, io, time::Duration};

#[derive(Debug, Args)]
pub struct Run {
    /// Where the bridge is, or the proxy in front of it.
    #[arg(long)]
    pub service: String,
    /// v1 waits on one long call; v2 submits a task and polls; events submits a task and is told (by `listen`).
    #[arg(long)]
    pub mode: Mode,
    /// Only this agenda; without it all of them.
    #[arg(long)]
    pub agenda: Option<String>,
    /// A key that proves who we are.
    #[arg(long)]
    pub key: Option<String>,
    /// v1: after how many seconds this client gives up on a call. 60 is Feign's default; 900 is what v1 needs.
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub cut: Duration,
    /// v1: what a 504 means to us.
    #[arg(long, default_value = "poll")]
    pub on_504: On504,
    /// How many calls are made before giving up.
    #[arg(long, default_value_t = 20)]
    pub tries: u32,
    /// events: after how many seconds without an event the task is looked at all the same.
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub fallback: Duration,
    /// Seconds between two calls, and between two looks at a task.
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub pause: Duration,
    /// Go on until every agenda has its protocol or has failed; without it only those that are ready now.
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    V1,
    V2,
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum On504 {
    /// The task goes on: look at its status until it has ended.
    Poll,
    /// It failed: call again.
    Again,
}

/// How asking for a protocol ended.
#[derive(Debug)]
pub enum Outcome {
    Protocol {
        task_id: String,
        protocol_id: String,
        version: u64,
    },
    Failed {
        task_id: Option<String>,
        problem: String,
        detail: String,
    },
    /// Nobody answered, as often as we asked: what is known stays as it is, and the next run goes on from there.
    NoAnswer,
    /// 410: v1 is closed to us.
    Gone,
}

#[derive(Debug)]
pub struct Machine {
    pub store: Store,
    pub how: Run,
}

impl Machine {
    pub fn new(store: Store, how: Run) -> Self {
        Self { store, how }
    }

    /// Works through the agendas; the exit code.
    pub async fn run(&self) -> Result<u8, Box<dyn Error>> {
        let service = Service::new(&self.how.service, self.how.key.clone())?;
        let mut failed = Vec::new();
        loop {
            let mut state = self.store.read()?;
            state.agendas.retain(|id, _| !failed.contains(id) && self.how.agenda.as_ref().is_none_or(|only| only == id));
            if let Some((id, _)) = state.agendas.iter().find(|(_, agenda)| agenda.is_triggered()) {
                let outcome = match self.how.mode {
                    Mode::V1 => self.generate_v1(&service, id).await?,
                    Mode::V2 => self.generate_v2(&service, id).await?,
                    Mode::Events => self.generate_told(&service, id).await?,
                };
                if matches!(outcome, Outcome::Gone) {
                    eprintln!("{id}: v1 is closed (410): move to --mode v2");
                    return Ok(3);
                }
                if !self.apply(id, outcome)? {
                    failed.push(id.clone());
                }
            } else {
                let open = state.agendas.values().any(|agenda| !matches!(agenda.generation, Generation::Done { .. }));
                if !(self.how.wait && open) {
                    return Ok(u8::from(!failed.is_empty()));
                }
                tokio::time::sleep(self.how.pause).await;
            }
        }
    }

    /// Writes the outcome into the state: on success the questions become PROTECTED. Whether it was one.
    fn apply(&self, id: &str, outcome: Outcome) -> io::Result<bool> {
        let generation = match outcome {
            Outcome::Protocol { task_id, protocol_id, version } => Generation::Done { task_id, protocol_id, version },
            Outcome::Failed { task_id, problem, detail } => Generation::Failed { task_id, problem, detail },
            Outcome::NoAnswer | Outcome::Gone => {
                println!("{}", json!({ "agendaId": id, "generation": null }));
                return Ok(false);
            }
        };
        println!("{}", json!({ "agendaId": id, "generation": &generation }));
        let done = matches!(generation, Generation::Done { .. });
        self.store.change(|state| {
            if let Some(agenda) = state.agendas.get_mut(id) {
                agenda.generation = generation;
                if done {
                    agenda.protect();
                }
            }
        })?;
        Ok(done)
    }

    /// Writes how far an agenda's protocol is, before the next step is taken.
    pub fn remember(&self, id: &str, generation: Generation) -> io::Result<()> {
        self.store.change(|state| {
            if let Some(agenda) = state.agendas.get_mut(id) {
                agenda.generation = generation;
            }
        })
    }

    /// Looks at a task until it has ended, then takes its protocol.
    pub async fn follow(&self, service: &Service, task: &str) -> Outcome {
        let mut silent = 0;
        while silent < self.how.tries {
            match service.status(task).await {
                Ok(answer) if answer.status == 200 => {
                    silent = 0;
                    match answer.body["status"].as_str() {
                        Some("COMPLETED") => match service.result(task).await {
                            Ok(result) if result.status == 200 => return protocol(task, &result),
                            // Asked again below.
                            result => eprintln!("{task}: no result yet: {result:?}"),
                        },
                        Some("FAILED" | "CANCELLED") => return task_failed(task, &answer),
                        _ => {}
                    }
                }
                Ok(answer) if matches!(answer.status, 401 | 403 | 404) => return failed(&answer),
                // The network, a proxy, or a service that restarts: the task does not mind.
                other => {
                    silent += 1;
                    eprintln!("{task}: no status: {other:?}");
                }
            }
            tokio::time::sleep(self.how.pause).await;
        }
        Outcome::NoAnswer
    }
}

/// The protocol that an answer holds.
pub fn protocol(task: &str, answer: &Answer) -> Outcome {
    let protocol_id = answer.body["protocolId"].as_str().unwrap_or_default().to_owned();
    Outcome::Protocol { task_id: task.to_owned(), protocol_id, version: answer.body["version"].as_u64().unwrap_or_default() }
}

/// The problem that an answer is.
pub fn failed(answer: &Answer) -> Outcome {
    let (problem, detail) = answer.problem();
    Outcome::Failed { task_id: answer.task_id.clone(), problem, detail }
}

/// A task that ended without a protocol; its failure has the codes of v1's problems.
fn task_failed(task: &str, answer: &Answer) -> Outcome {
    let code = answer.body["failure"]["code"].as_str().unwrap_or("cancelled");
    let detail = answer.body["errorMessage"].as_str().unwrap_or("the task was cancelled").to_owned();
    Outcome::Failed { task_id: Some(task.to_owned()), problem: format!("/problems/{code}"), detail }
}
