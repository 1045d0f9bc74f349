//! M2 with events: submit, then wait to be told. `listen` takes events into the state file, whenever they come: one that comes before the 202, or before a crash, is
//! found there by the key that was written before the submission. If nothing comes for long, the task is looked at all the same.

use crate::{
    machine::{Machine, Outcome, protocol},
    service::Service,
    state::Told,
    v2::key_of,
};
use std::io;
use tokio::time::Instant;

impl Machine {
    /// Has a task generate the protocol, and waits to be told.
    pub async fn generate_told(&self, service: &Service, agenda: &str) -> io::Result<Outcome> {
        let task = match self.submitted(service, agenda).await? {
            Ok(task) => task,
            Err(outcome) => return Ok(outcome),
        };
        let begun = Instant::now();
        while begun.elapsed() < self.how.fallback {
            let state = self.store.read()?;
            let key = state.agendas.get(agenda).map(|agenda_known| key_of(agenda, agenda_known.rounds)).unwrap_or_default();
            if let Some(told) = state.told(&key, &task) {
                println!("{agenda}: told {}", told.kind);
                return Ok(self.outcome(service, told).await);
            }
            tokio::time::sleep(self.how.pause.min(self.how.fallback)).await;
        }
        eprintln!("{agenda}: nothing was told; looking at the task");
        Ok(self.follow(service, &task).await)
    }

    async fn outcome(&self, service: &Service, told: &Told) -> Outcome {
        if told.kind.ends_with("Completed") {
            return match service.result(&told.task_id).await {
                Ok(answer) if answer.status == 200 => protocol(&told.task_id, &answer),
                // The event is true; the protocol is fetched by looking at the task until it can be had.
                _ => self.follow(service, &told.task_id).await,
            };
        }
        let code = told.failure.as_deref().unwrap_or("cancelled");
        Outcome::Failed { task_id: Some(told.task_id.clone()), problem: format!("/problems/{code}"), detail: told.kind.clone() }
    }
}
