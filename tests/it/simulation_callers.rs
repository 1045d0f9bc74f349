//! What callers do in a simulation: they submit, cancel, replay, dismiss, pause and wait, and what they are answered goes into the record.

use crate::{
    engine_world::{SECOND, author, demo, protocol, with_key},
    simulation_machine::Machine,
    simulation_record::{locked, submitted},
    simulation_world::{MINUTE, World, YEAR},
};
use protocol_bridge::{
    domain::task::{Phase, Status},
    engine::{Cancelled, DeadLetterFilter, Dismissed, Replayed, WaitFor, Waited},
};
use rand::RngExt as _;
use std::sync::Arc;

impl World {
    pub fn submit(&mut self) {
        let machine = self.any_machine();
        let mut submission = match self.rng.random_range(0..8) {
            0..3 => demo("{}"),
            _ => protocol(&format!("a{}", self.rng.random_range(0..4))),
        };
        submission.run_at = match self.rng.random_range(0..20) {
            0..14 => None,
            14..16 => Some(self.now() - MINUTE),
            16..19 => Some(self.now() + SECOND * self.rng.random_range(1..120)),
            _ => Some(self.now() + YEAR * 3),
        };
        let mut fingerprint = None;
        if self.rng.random_bool(0.4) {
            // A key goes with one agenda most of the time; sometimes it is used for another content.
            let key = format!("k{}", self.rng.random_range(0..6));
            let content = if self.rng.random_bool(0.1) { "another" } else { "the same" };
            submission = with_key(submission, &key, content);
            fingerprint = Some((key, content.to_owned()));
        }
        let what = format!("{machine}: submit {:?} {:?} at {:?}", submission.agenda_id, fingerprint, submission.run_at);
        self.note(&what);
        let (engine, record) = (self.machines[machine].node.engine.clone(), Arc::clone(&self.record));
        self.calls.push(tokio::spawn(submitted(engine, submission, fingerprint, record)));
    }

    pub fn cancel(&mut self) {
        let Some(id) = self.any_task() else { return };
        let machine = self.any_machine();
        self.note(&format!("{machine}: cancel {id}"));
        let (engine, record) = (self.machines[machine].node.engine.clone(), Arc::clone(&self.record));
        self.calls.push(tokio::spawn(async move {
            let answer = engine.cancel(id, &author()).await;
            let mut record = locked(&record);
            match answer {
                Ok(Cancelled::Now(task) | Cancelled::Before(task)) => {
                    record.expect(task.status == Status::Cancelled, "cancelled", &task);
                    record.told.cancelled.insert(id.to_string());
                }
                Ok(Cancelled::AlreadyFinished(task)) => {
                    record.expect(matches!(task.status, Status::Completed | Status::Failed), "finished", &task);
                }
                Ok(Cancelled::Unknown) => record.wrong.push(format!("{id} is unknown to a cancel")),
                Err(_) => {}
            }
        }));
    }

    pub async fn replay(&mut self) {
        let machine = self.any_machine();
        let engine = self.machines[machine].node.engine.clone();
        let Ok(letters) = engine.dead_letters(DeadLetterFilter::default(), None, 20).await else { return };
        if letters.items.is_empty() {
            return;
        }
        let letter = letters.items[self.rng.random_range(0..letters.items.len())].clone();
        let from = self.rng.random_bool(0.3).then_some(Phase::Merge);
        self.note(&format!("{machine}: replay {} of {} from {from:?}", letter.id, letter.task_id));
        locked(&self.record).seen.entry(letter.task_id).or_default().replays_asked += 1;
        let record = Arc::clone(&self.record);
        self.calls.push(tokio::spawn(async move {
            let answer = engine.replay(letter.id, from, &author()).await;
            locked(&record).seen.entry(letter.task_id).or_default().replays_answered += 1;
            match answer {
                Ok(Replayed::Queued(task)) => {
                    let pending = task.status == Status::Pending && task.attempt_no == 0 && task.id == letter.task_id;
                    locked(&record).expect(pending, "in the queue again", &task);
                }
                Ok(Replayed::AgendaBusy(other)) => locked(&record).expect(other != letter.task_id, "another task", &other),
                Ok(Replayed::Unknown) => locked(&record).wrong.push(format!("{} is unknown to a replay", letter.id)),
                Ok(Replayed::AlreadyReplayed) | Err(_) => {}
            }
        }));
    }

    pub async fn dismiss(&mut self) {
        let machine = self.any_machine();
        let engine = self.machines[machine].node.engine.clone();
        let open = DeadLetterFilter { open_only: true, ..DeadLetterFilter::default() };
        let Ok(letters) = engine.dead_letters(open, None, 1).await else { return };
        let Some(letter) = letters.items.into_iter().next() else { return };
        self.note(&format!("{machine}: dismiss {}", letter.id));
        let record = Arc::clone(&self.record);
        self.calls.push(tokio::spawn(async move {
            if let Ok(Dismissed::Unknown) = engine.dismiss(letter.id, &author()).await {
                locked(&record).wrong.push(format!("{} is unknown to a dismissal", letter.id));
            }
        }));
    }

    pub fn pause_or_resume(&mut self) {
        let (machine, pause) = (self.any_machine(), self.rng.random_bool(0.4));
        self.note(&format!("{machine}: {}", if pause { "pause" } else { "resume" }));
        let engine = self.machines[machine].node.engine.clone();
        self.calls.push(tokio::spawn(async move {
            // An error leaves open whether it happened; at rest somebody resumes until it has.
            if pause { drop(engine.pause(&author()).await) } else { drop(engine.resume(&author()).await) }
        }));
    }

    pub fn wait(&mut self) {
        let Some(id) = self.any_task() else { return };
        let machine = self.any_machine();
        self.note(&format!("{machine}: wait for {id}"));
        let Machine { node, waiting, .. } = &mut self.machines[machine];
        let (engine, clock, record) = (node.engine.clone(), node.clock.clone(), Arc::clone(&self.record));
        waiting.push(tokio::spawn(async move {
            match engine.hub().wait(id, WaitFor::Finish, clock.monotonic() + YEAR * 100).await {
                Ok(Waited::Reached(task)) => locked(&record).expect(task.status.is_terminal(), "an end that was waited for", &task),
                Ok(Waited::Draining(_)) => {}
                other => locked(&record).wrong.push(format!("a wait for {id} ended with {other:?}")),
            }
        }));
    }
}
