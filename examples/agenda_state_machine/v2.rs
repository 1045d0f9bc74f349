//! M2: submit, remember the task, look at it until it has ended. No call is longer than a moment, and a crash at any point is harmless:
//!
//! | killed | the next run |
//! | --- | --- |
//! | after the key was written | submits under the same key: the same task, whether the first request arrived or not |
//! | after the task was written | only polls |
//!
//! Events (a webhook or a message) tell of the end sooner, see `told.rs`; polling stays the fallback that always works.

use crate::{
    machine::{Machine, Outcome, failed},
    service::Service,
    state::Generation,
};
use std::io;

impl Machine {
    /// Has a task generate the protocol.
    pub async fn generate_v2(&self, service: &Service, agenda: &str) -> io::Result<Outcome> {
        Ok(match self.submitted(service, agenda).await? {
            Ok(task) => self.follow(service, &task).await,
            Err(outcome) => outcome,
        })
    }

    /// The task of the agenda's protocol: the one that is remembered, or a new one.
    pub async fn submitted(&self, service: &Service, agenda: &str) -> io::Result<Result<String, Outcome>> {
        let known = self.store.read()?.agendas.get(agenda).map(|agenda| agenda.generation.clone());
        let key = match known {
            Some(Generation::Running { task_id }) => return Ok(Ok(task_id)),
            Some(Generation::Submitting { key }) => key,
            _ => self.new_key(agenda)?,
        };
        for call in 1..=self.how.tries {
            match service.submit(agenda, &key).await {
                Ok(answer) if answer.status == 202 => {
                    let task = answer.task_id.clone().unwrap_or_default();
                    self.remember(agenda, Generation::Running { task_id: task.clone() })?;
                    return Ok(Ok(task));
                }
                // The key makes a repeat harmless, whatever became of this request.
                Ok(answer) if matches!(answer.status, 429 | 500..) => {
                    eprintln!("{agenda}: submission {call}: {}", answer.status);
                }
                Ok(answer) => return Ok(Err(failed(&answer))),
                Err(error) => eprintln!("{agenda}: submission {call}: {error}"),
            }
            tokio::time::sleep(self.how.pause).await;
        }
        Ok(Err(Outcome::NoAnswer))
    }

    /// A key for one more protocol of the agenda, in the file before it is used.
    fn new_key(&self, agenda_id: &str) -> io::Result<String> {
        self.store.change(|state| {
            let rounds = state.agendas.get_mut(agenda_id).map_or(0, |agenda| {
                agenda.rounds += 1;
                agenda.rounds
            });
            let key = key_of(agenda_id, rounds);
            if let Some(agenda) = state.agendas.get_mut(agenda_id) {
                agenda.generation = Generation::Submitting { key: key.clone() };
            }
            key
        })
    }
}

/// The idempotency key, and our reference in events.
pub fn key_of(agenda: &str, rounds: u32) -> String {
    format!("agenda-state-machine-{agenda}-{rounds}")
}
