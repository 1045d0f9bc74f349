//! M1: the call that waits. What the Feign client does, with everything that may happen to it on the way.
//!
//! | what comes back | what it means | what to do |
//! | --- | --- | --- |
//! | 200 | the protocol | REPORT_SIGNED → PROTECTED |
//! | 504 with a task's id | the service waited long enough; the task goes on | poll its status, or call again |
//! | 504 or 502 of a proxy, a cut, a reset | nobody knows; the task goes on | find the task by its agenda, or call again: the call joins it |
//! | 503, 429 | not now; 503 of a draining instance: the task goes on | call again |
//! | 410 | v1 is closed | move to v2 |
//! | anything else | the protocol cannot be had: the agenda is not ready, not valid, not there | tell people |

use crate::{
    machine::{Machine, On504, Outcome, failed, protocol},
    service::{Answer, Service},
    state::Generation,
};
use std::io;

impl Machine {
    /// Calls v1 until there is an outcome.
    pub async fn generate_v1(&self, service: &Service, agenda: &str) -> io::Result<Outcome> {
        // Killed while it polled: the task is known.
        if let Some(Generation::Running { task_id }) = self.store.read()?.agendas.get(agenda).map(|agenda| agenda.generation.clone()) {
            return Ok(self.follow(service, &task_id).await);
        }
        for call in 1..=self.how.tries {
            match service.merge(agenda, self.how.cut).await {
                Ok(answer) => match what_now(&answer) {
                    Next::Done => return Ok(protocol(answer.task_id.as_deref().unwrap_or_default(), &answer)),
                    Next::Gone => return Ok(Outcome::Gone),
                    Next::Fail => return Ok(failed(&answer)),
                    Next::GoesOn => {
                        eprintln!("{agenda}: call {call}: {} {}", answer.status, answer.task_id.as_deref().unwrap_or("(a proxy's)"));
                        if self.how.on_504 == On504::Poll
                            && let Some(task) = self.task_of(service, agenda, &answer).await
                        {
                            self.remember(agenda, Generation::Running { task_id: task.clone() })?;
                            return Ok(self.follow(service, &task).await);
                        }
                    }
                    Next::Again => {
                        eprintln!("{agenda}: call {call}: {}", answer.status);
                    }
                },
                // Feign's read timeout, or a broken connection. Calling again joins the task, or gets its finished protocol.
                Err(error) => eprintln!("{agenda}: call {call}: {error}"),
            }
            tokio::time::sleep(self.how.pause).await;
        }
        Ok(Outcome::NoAnswer)
    }

    /// The task whose 504 this is: named in it, or, in a proxy's 504, the agenda's newest.
    async fn task_of(&self, service: &Service, agenda: &str, answer: &Answer) -> Option<String> {
        match &answer.task_id {
            Some(task) => Some(task.clone()),
            None => service.newest_task(agenda).await.ok().flatten(),
        }
    }
}

enum Next {
    Done,
    GoesOn,
    Again,
    Gone,
    Fail,
}

fn what_now(answer: &Answer) -> Next {
    match (answer.status, answer.error_source.as_deref()) {
        (200, _) => Next::Done,
        (410, _) => Next::Gone,
        (504, _) | (502, None) => Next::GoesOn,
        (429 | 503, _) => Next::Again,
        _ => Next::Fail,
    }
}
