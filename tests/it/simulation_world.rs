//! A simulated world: some engines over one database, whose ticks are called one by one in a random order while callers submit, cancel and replay, time jumps,
//! transactions fail before or after they happen, messages are lost or repeated, and nodes stand still, drain or die.
//!
//! Every action is given time to come to its end, or to where it waits for the clock, before the next begins: one seed gives one history, but for the order in
//! which PostgreSQL answers those who ask at once. At the end the faults stop, everything comes to rest, and what is in the database has to add up.

use crate::{
    engine_world::{SECOND, author, start_of_time},
    simulation_machine::{Machine, TICKS},
    simulation_record::{Record, locked},
    simulation_stage::{Cue, Stage},
    simulation_wire::Wire,
    support::{TestDatabase, reconcile::differences},
};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy, metrics},
    domain::{ids::TaskId, task::Phase, time::Timestamp},
    store::{Db, Fault},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::{JoinHandle, yield_now};

pub const MINUTE: Duration = Duration::from_mins(1);
/// Longer than any key lives after its task's end must not pass while keys are held against their tasks.
const LONGEST_HISTORY: Duration = Duration::from_hours(6 * 24);
pub const YEAR: Duration = Duration::from_hours(365 * 24);
/// Rounds in which everything must come to rest.
const ROUNDS: usize = 400;

/// The engine's transactions, each of which is made to fail.
const TRANSACTIONS: [&str; 20] = [
    "submit_task",
    "claim_tasks",
    "claim_message",
    "claim_look_up",
    "due_tasks",
    "relay_claim",
    "relay_mark",
    "relay_back_off",
    "finish_task",
    "retry_task",
    "release_task",
    "renew_leases",
    "checkpoint",
    "progress",
    "expired_leases",
    "rescue",
    "cancel_task",
    "replay_task",
    "dismiss_dead_letter",
    "pause",
];

pub struct World {
    seed: u64,
    pub rng: StdRng,
    pub database: TestDatabase,
    pub db: Db,
    pub entropy: Entropy,
    /// The store's own clock, on which delayed transactions wait.
    clock: Clock,
    pub elapsed: Duration,
    pub wire: Wire,
    pub stage: Stage,
    pub machines: Vec<Machine>,
    pub record: Arc<Mutex<Record>>,
    pub calls: Vec<JoinHandle<()>>,
    history: Vec<String>,
    faults: bool,
}

impl World {
    pub async fn new(seed: u64, database: TestDatabase) -> Self {
        let clock = Clock::manual(start_of_time());
        let entropy = Entropy::seeded(seed);
        let db = database.open(clock.clone(), entropy.clone()).await;
        let mut world = Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
            database,
            db,
            entropy,
            clock,
            elapsed: Duration::ZERO,
            wire: Wire::new(seed),
            stage: Stage::default(),
            machines: Vec::new(),
            record: Arc::default(),
            calls: Vec::new(),
            history: Vec::new(),
            faults: true,
        };
        for number in 0..world.rng.random_range(2..=3) {
            let machine = world.machine(number);
            world.machines.push(machine);
        }
        world
    }

    /// Without faults of the database: what is left is order, time, messages and machines.
    pub fn without_faults(mut self) -> Self {
        self.faults = false;
        self
    }

    /// Lives through `steps` random actions, comes to rest and adds up.
    pub async fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            self.act().await;
            self.settle().await;
            self.look().await;
        }
        self.rest().await;
        self.add_up().await;
        self.db.close().await;
    }

    // What happens.

    async fn act(&mut self) {
        match self.rng.random_range(0..100) {
            0..14 => self.submit(),
            14..54 => {
                let (machine, tick) = (self.any_machine(), self.pick(&TICKS));
                self.tick(machine, tick);
            }
            54..68 => self.cue(),
            68..80 => self.advance_a_little(),
            80..84 => self.cancel(),
            84..87 => self.replay().await,
            87 => self.dismiss().await,
            88..90 => self.wait(),
            90..95 => self.fault(),
            95 => self.pause_or_resume(),
            96 => self.stop_or_go_on().await,
            97 => self.kill().await,
            98 => self.drain(),
            _ => {
                self.note("the broker loses everything");
                self.wire.lose_everything();
            }
        }
    }

    fn cue(&mut self) {
        let actors: Vec<_> = self.stage.actors().into_iter().filter(|actor| self.machines[actor.node].stopped.is_none()).collect();
        if actors.is_empty() {
            return;
        }
        let actor = actors[self.rng.random_range(0..actors.len())].clone();
        let phase = self.pick(&Phase::ALL);
        let cue = match self.rng.random_range(0..20) {
            0..9 => Cue::Complete(self.rng.random_range(0..2)),
            9..12 => Cue::Retry,
            12..14 => Cue::Fail,
            14 => Cue::Panic,
            15..18 => Cue::Checkpoint(phase),
            _ => Cue::Progress(phase),
        };
        self.note(&format!("{}: {} claim {} {cue:?}", actor.node, actor.task, actor.claim_no));
        actor.cue(cue);
    }

    fn advance_a_little(&mut self) {
        let by = match self.rng.random_range(0..30) {
            0..18 => Duration::from_millis(self.rng.random_range(1..3_000)),
            18..27 => SECOND * self.rng.random_range(5..40),
            27..29 => MINUTE * self.rng.random_range(2..30),
            _ => MINUTE * 60 * self.rng.random_range(1..20),
        };
        if self.elapsed + by < LONGEST_HISTORY {
            self.advance(by);
        }
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let name = self.pick(&TRANSACTIONS);
        let fault = match self.rng.random_range(0..5) {
            0..2 => Fault::FailBefore,
            2..4 => Fault::FailAfter,
            _ => Fault::Delay(SECOND * self.rng.random_range(1..50)),
        };
        let times = self.rng.random_range(1..4);
        self.note(&format!("{name}: {fault:?}, {times} times"));
        self.db.faults().arm(name, fault, times);
    }

    // Time.

    pub fn now(&self) -> Timestamp {
        start_of_time() + self.elapsed
    }

    fn advance(&mut self, by: Duration) {
        self.note(&format!("{by:?} pass"));
        self.elapsed += by;
        self.clock.advance(by);
        for machine in &mut self.machines {
            match &mut machine.stopped {
                Some(behind) => *behind += by,
                None => machine.node.clock.advance(by),
            }
        }
    }

    /// Until nothing goes on that does not wait for the clock or for a cue.
    pub async fn settle(&mut self) {
        loop {
            self.db.faults().quiet().await;
            // Who was woken may wake others, and so on.
            for _ in 0..64 {
                yield_now().await;
            }
            if self.db.faults().running() == 0 {
                break;
            }
        }
        self.replace_the_drained();
        self.calls.retain(|call| !call.is_finished());
    }

    // What must hold at every moment.

    async fn look(&mut self) {
        for _ in 0..2 {
            if let Some(id) = self.any_task() {
                let engine = self.machines[0].node.engine.clone();
                if let Ok(task) = engine.task(id).await {
                    locked(&self.record).see(id, task.map(|task| (task.revision, task.status)));
                }
            }
        }
        let mut running: HashMap<TaskId, usize> = HashMap::new();
        for actor in self.stage.actors() {
            if self.machines[actor.node].stopped.is_none() {
                *running.entry(actor.task).or_default() += 1;
            }
        }
        let twice: Vec<_> = running.into_iter().filter(|(_, count)| *count > 1).collect();
        let mut wrong = std::mem::take(&mut locked(&self.record).wrong);
        if !twice.is_empty() {
            wrong.push(format!("runs twice at once, on machines that do not stand still: {twice:?}"));
        }
        self.fail_with(&wrong);
    }

    // The end.

    async fn rest(&mut self) {
        self.note("everything comes to rest");
        self.db.faults().clear();
        self.wire.be_honest();
        for machine in 0..self.machines.len() {
            self.go_on(machine).await;
        }
        // What is delayed still comes, and may be a pause.
        self.advance(MINUTE);
        self.settle().await;
        self.machines[0].node.engine.resume(&author()).await.expect("nothing fails any more");
        for _ in 0..ROUNDS {
            for machine in 0..self.machines.len() {
                for tick in TICKS {
                    self.tick(machine, tick);
                    self.settle().await;
                }
            }
            for actor in self.stage.actors() {
                actor.cue(Cue::Complete(0));
            }
            self.settle().await;
            self.look().await;
            let active = self.database.number("SELECT COUNT(*) FROM task WHERE status IN ('PENDING', 'IN_PROGRESS')").await;
            let running: usize = self.machines.iter().map(|machine| machine.ticks.running()).sum();
            let waiting = self.machines.iter().flat_map(|machine| &machine.waiting).filter(|wait| !wait.is_finished()).count();
            let unsent = self.database.number("SELECT COUNT(*) FROM outbox WHERE published_us IS NULL").await;
            if active == 0 && running == 0 && waiting == 0 && unsent == 0 && self.calls.is_empty() {
                return;
            }
            self.advance(self.until_something_happens().await);
            self.settle().await;
        }
        let unfinished = self.database.fetch("SELECT id, status, next_attempt_us FROM task WHERE finished_us IS NULL").await;
        let unsent = self.database.fetch("SELECT message_id, available_us, claim_until_us FROM outbox WHERE published_us IS NULL").await;
        let calls = self.calls.len();
        self.fail_with(&[format!("it does not come to rest: {unfinished:?}; unsent {unsent:?}; {calls} calls without an answer")]);
    }

    /// Ten seconds; or, while nothing runs, until the first task is due: years, for some.
    async fn until_something_happens(&self) -> Duration {
        let running = self.database.number("SELECT COUNT(*) FROM task WHERE status = 'IN_PROGRESS'").await;
        let due = self.database.fetch("SELECT MIN(next_attempt_us) FROM task WHERE status = 'PENDING'").await[0][0].as_i64();
        let far = due.filter(|_| running == 0).map(|due| Timestamp::from_micros(due).since(self.now()));
        far.unwrap_or_default().max(SECOND * 10)
    }

    async fn add_up(&mut self) {
        let told = locked(&self.record).told.clone();
        let mut differences = differences(&self.database, &told).await;
        // Whoever lost its lease must not end the task for its successor.
        for row in self.database.fetch("SELECT task_id, claim_no FROM attempt WHERE outcome = 'completed'").await {
            let task = row[0].as_str().and_then(|id| id.parse().ok()).expect("an id");
            let claim_no = row[1].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a number");
            if !self.stage.was_done(task, claim_no) {
                differences.push(format!("{task} was completed under claim {claim_no}, whose attempt never said that it is done"));
            }
        }
        self.fail_with(&differences);
    }

    fn fail_with(&self, wrong: &[String]) {
        assert!(
            wrong.is_empty(),
            "seed {} on {:?}\n{}\n\nits history:\n{}",
            self.seed,
            self.database.dialect,
            wrong.join("\n"),
            self.history.join("\n")
        );
    }

    // Small things.

    pub fn any_machine(&mut self) -> usize {
        self.rng.random_range(0..self.machines.len())
    }

    pub fn any_task(&mut self) -> Option<TaskId> {
        let record = locked(&self.record);
        let known = record.seen.len();
        (known > 0).then(|| *record.seen.keys().nth(self.rng.random_range(0..known)).expect("one of them"))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    pub fn note(&mut self, what: &str) {
        self.history.push(format!("{:>12.3?} {what}", self.elapsed.as_secs_f64()));
    }
}

#[test]
fn every_transaction_that_is_made_to_fail_exists() {
    let unknown: Vec<_> = TRANSACTIONS.into_iter().filter(|name| !metrics::TRANSACTIONS.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
