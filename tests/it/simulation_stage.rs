//! Executors that do nothing until they are told: each running attempt of a simulation waits on the stage for its next cue.

use futures::{FutureExt as _, future::BoxFuture};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy},
    domain::{
        failure::{Failure, FailureCode},
        ids::TaskId,
        protocol::{NewProtocol, Record},
        task::{Kind, Phase, Progress, Task},
    },
    engine::{Decision, Done, Run, Step, TaskExecutor},
    generator::publish::publish,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::mpsc;

/// What an attempt is told to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cue {
    /// Done; a protocol task publishes a protocol with one of a few contents, so that some tasks share one.
    Complete(u8),
    Retry,
    Fail,
    Panic,
    Checkpoint(Phase),
    Progress(Phase),
}

/// An attempt that waits for its cue.
#[derive(Debug, Clone)]
pub struct Actor {
    pub node: usize,
    pub task: TaskId,
    pub claim_no: u32,
    cues: mpsc::UnboundedSender<Cue>,
}

impl Actor {
    pub fn cue(&self, cue: Cue) {
        // An attempt that has ended meanwhile needs none.
        let _ = self.cues.send(cue);
    }
}

/// Where the attempts of all nodes wait; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Stage(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    entered: u64,
    actors: BTreeMap<u64, Actor>,
    /// The claims whose attempts said that they are done, whether or not that was accepted.
    done: BTreeSet<(TaskId, u32)>,
}

impl Stage {
    /// Those who wait, in the order in which they came.
    pub fn actors(&self) -> Vec<Actor> {
        self.lock().actors.values().cloned().collect()
    }

    /// Whether this claim's attempt ever said that it is done.
    pub fn was_done(&self, task: TaskId, claim_no: u32) -> bool {
        self.lock().done.contains(&(task, claim_no))
    }

    /// The executor of one node.
    pub fn executor(&self, node: usize, entropy: &Entropy) -> Arc<dyn TaskExecutor> {
        Arc::new(Player { stage: self.clone(), node, entropy: entropy.clone() })
    }

    fn enter(&self, node: usize, task: &Task) -> (Seat, mpsc::UnboundedReceiver<Cue>) {
        let (cues, heard) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        inner.entered += 1;
        let number = inner.entered;
        inner.actors.insert(number, Actor { node, task: task.id, claim_no: task.claim_no, cues });
        (Seat { stage: self.clone(), number }, heard)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics while it is held")
    }
}

/// Leaves the stage when the attempt's future is dropped, however that comes.
struct Seat {
    stage: Stage,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.stage.lock().actors.remove(&self.number);
    }
}

struct Player {
    stage: Stage,
    node: usize,
    entropy: Entropy,
}

impl TaskExecutor for Player {
    fn execute(&self, run: Run) -> BoxFuture<'_, Decision> {
        let (seat, mut cues) = self.stage.enter(self.node, run.task());
        async move {
            let _seat = seat;
            let mut steps = 0;
            while let Some(cue) = cues.recv().await {
                match cue {
                    Cue::Complete(content) => {
                        self.stage.lock().done.insert((run.task().id, run.task().claim_no));
                        return Decision::Done(self.done(run.task(), run.clock(), content));
                    }
                    Cue::Retry => return Decision::Retry(Failure::new(FailureCode::AgendaSourceUnavailable, "Away, on purpose.")),
                    Cue::Fail => return Decision::Fail(Failure::new(FailureCode::RenderFailed, "Does not typeset, on purpose.")),
                    // Without the hook: a thousand of them would only be noise.
                    Cue::Panic => std::panic::resume_unwind(Box::new("on purpose")),
                    Cue::Checkpoint(phase) => {
                        steps += 1;
                        let name = format!("{phase}/{steps}");
                        let step = Step { key: format!("{} {name}", run.task().id), name, output: "{}".to_owned() };
                        if run.checkpoint(phase, Progress { done: steps, known: 9 }, vec![step]).await.is_err() {
                            break;
                        }
                    }
                    Cue::Progress(phase) => {
                        if run.progress(phase, Progress { done: steps, known: 9 }).await.is_err() {
                            break;
                        }
                    }
                }
            }
            Decision::Retry(Failure::new(FailureCode::Internal, "Stopped."))
        }
        .boxed()
    }
}

impl Player {
    fn done(&self, task: &Task, clock: &Clock, content: u8) -> Done {
        let (Kind::Protocol, Some(agenda_id)) = (task.kind, &task.agenda_id) else { return Done::default() };
        let now = clock.now();
        let record = Record {
            date: "2026-11-30".to_owned(),
            title: format!("Content {content}"),
            body: "Council".to_owned(),
            questions: Vec::new(),
            warnings: Vec::new(),
            not_applicable: Vec::new(),
            origin: protocol_bridge::domain::protocol::Origin::default(),
        };
        let new = NewProtocol {
            id: self.entropy.id(now),
            agenda_id: agenda_id.clone(),
            number: "1".to_owned(),
            fingerprint: format!("{content}"),
            record,
            documents: Vec::new(),
        };
        publish(new, task.id, now)
    }
}
