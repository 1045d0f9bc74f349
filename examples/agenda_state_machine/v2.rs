//! M2: submit, remember the task, look at it until it has ended. No call is longer than a moment, and a crash at any point is harmless:
//!
//! | killed | the next run |
//! | --- | --- |
//! | after the key was written | submits under the same key: the same task, whether the first request arrived or not |
//! | after the task was written | only polls |
//!
//! Events (a webhook or a message) would tell of the end sooner; polling stays the fallback that always works.

use crate::{
    machine::{Machine, Outcome, failed},
    service::Service,
    state::Generation,
};
use std::io;

impl Machine {
    /// Has a task generate the protocol.
    pub async fn generate_v2(&self, service: &Service, agenda: &str) -> io::Result<Outcome> {
        let known = self.store.read()?.agendas.get(agenda).map(|agenda| agenda.generation.clone());
        let key = match known {
            Some(Generation::Running { task_id }) => return Ok(self.follow(service, &task_id).await),
            Some(Generation::Submitting { key }) => key,
            _ => self.new_key(agenda)?,
        };
        for call in 1..=self.how.tries {
            match service.submit(agenda, &key).await {
                Ok(answer) if answer.status == 202 => {
                    let task = answer.task_id.clone().unwrap_or_default();
                    self.remember(agenda, Generation::Running { task_id: task.clone() })?;
                    return Ok(self.follow(service, &task).await);
                }
                // The key makes a repeat harmless, whatever became of this request.
                Ok(answer) if matches!(answer.status, 429 | 500..) => {
                    eprintln!("{agenda}: submission {call}: {}", answer.status);
                }
                Ok(answer) => return Ok(failed(&answer)),
                Err(error) => eprintln!("{agenda}: submission {call}: {error}"),
            }
            tokio::time::sleep(self.how.pause).await;
        }
        Ok(Outcome::NoAnswer)
    }

    /// A key for one more protocol of the agenda, in the file before it is used.
    fn new_key(&self, agenda: &str) -> io::Result<String> {
        self.store.change(|state| {
            let rounds = state.agendas.get_mut(agenda).map_or(0, |agenda| {
                agenda.rounds += 1;
                agenda.rounds
            });
            let key = format!("agenda-state-machine-{agenda}-{rounds}");
            if let Some(agenda) = state.agendas.get_mut(agenda) {
                agenda.generation = Generation::Submitting { key: key.clone() };
            }
            key
        })
    }
}
