//! A simulated world: some engines over one database, whose ticks are called one by one in a random order while callers submit, cancel and replay, time jumps,
//! transactions fail before or after they happen, messages are lost or repeated, and nodes stand still, drain or die.
//!
//! Every action is given time to come to its end, or to where it waits for the clock, before the next begins: one seed gives one history, but for the order in
//! which PostgreSQL answers those who ask at once. At the end the faults stop, everything comes to rest, and what is in the database has to add up.

use crate::{
    engine_world::{Node, SECOND, Setup, author, demo, protocol, start_of_time, with_key},
    simulation_stage::{Cue, Stage},
    simulation_wire::Wire,
    support::{
        TestDatabase,
        reconcile::{Told, differences},
    },
};
use protocol_bridge::{
    base::{clock::Clock, entropy::Entropy, metrics},
    domain::{
        ids::TaskId,
        task::{Kind, Phase, Status},
        time::Timestamp,
    },
    engine::{Cancelled, DeadLetterFilter, Dismissed, Engine, Replayed, Submission, SubmitError, Submitted, Ticks, WaitFor, Waited},
    store::{Db, Fault},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::task::{JoinHandle, yield_now};

const MINUTE: Duration = Duration::from_mins(1);
/// Longer than any key lives after its task's end must not pass while keys are held against their tasks.
const LONGEST_HISTORY: Duration = Duration::from_hours(6 * 24);
const YEAR: Duration = Duration::from_hours(365 * 24);
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tick {
    Relay,
    Mark,
    Consume,
    ClaimDue,
    Renew,
    Rescue,
    Look,
}

const TICKS: [Tick; 7] = [Tick::Relay, Tick::Mark, Tick::Consume, Tick::ClaimDue, Tick::Renew, Tick::Rescue, Tick::Look];

/// One engine, and what goes on in it.
struct Machine {
    node: Node,
    ticks: Arc<Ticks>,
    /// Loops run one tick after the other; one that waits for the clock is not called again.
    ticking: HashMap<Tick, JoinHandle<()>>,
    waiting: Vec<JoinHandle<()>>,
    /// Its clock stands still, and by how much it is behind.
    stopped: Option<Duration>,
    draining: bool,
}

/// What callers were told, and what was seen of each task.
#[derive(Default)]
struct Record {
    told: Told,
    seen: BTreeMap<TaskId, Seen>,
    fingerprints: HashMap<String, String>,
    wrong: Vec<String>,
}

#[derive(Default)]
struct Seen {
    revision: u64,
    /// The terminal status that it had, and how many replays had been answered by then.
    ended: Option<(Status, u32)>,
    replays_asked: u32,
    replays_answered: u32,
    first: bool,
}

pub struct World {
    seed: u64,
    rng: StdRng,
    database: TestDatabase,
    db: Db,
    entropy: Entropy,
    /// The store's own clock, on which delayed transactions wait.
    clock: Clock,
    elapsed: Duration,
    wire: Wire,
    stage: Stage,
    machines: Vec<Machine>,
    record: Arc<Mutex<Record>>,
    calls: Vec<JoinHandle<()>>,
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

    fn machine(&mut self, number: usize) -> Machine {
        let clock = Clock::manual(start_of_time() + self.elapsed);
        let executor = self.stage.executor(number, &self.entropy);
        let mut setup = Setup::still(0)
            .with_config(|config| (config.max_attempts, config.max_running) = (3, 4))
            .with_transport(Arc::new(self.wire.clone()))
            .with_executor(Kind::Demo, Arc::clone(&executor))
            .with_executor(Kind::Protocol, executor);
        (setup.clock, setup.entropy) = (clock, self.entropy.clone());
        let (node, ticks) = setup.by_hand(&self.database, &self.db);
        Machine { node, ticks: Arc::new(ticks), ticking: HashMap::new(), waiting: Vec::new(), stopped: None, draining: false }
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

    fn submit(&mut self) {
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

    fn tick(&mut self, machine: usize, tick: Tick) {
        let Machine { ticks, ticking, stopped, draining, .. } = &mut self.machines[machine];
        if stopped.is_some() || ticking.get(&tick).is_some_and(|running| !running.is_finished()) {
            return;
        }
        // A process that drains relays, claims and rescues nothing any more.
        if *draining && !matches!(tick, Tick::Mark | Tick::Renew | Tick::Look) {
            return;
        }
        let ticks = Arc::clone(ticks);
        let run = tokio::spawn(async move {
            // An error is what the loop waits on and tries again after.
            match tick {
                Tick::Relay => drop(ticks.relay().await),
                Tick::Mark => ticks.mark().await,
                Tick::Consume => drop(ticks.consume().await),
                Tick::ClaimDue => drop(ticks.claim_due().await),
                Tick::Renew => drop(ticks.renew().await),
                Tick::Rescue => drop(ticks.rescue().await),
                Tick::Look => drop(ticks.look().await),
            }
        });
        ticking.insert(tick, run);
        self.note(&format!("{machine}: {tick:?}"));
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

    fn cancel(&mut self) {
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

    async fn replay(&mut self) {
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

    async fn dismiss(&mut self) {
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

    fn pause_or_resume(&mut self) {
        let (machine, pause) = (self.any_machine(), self.rng.random_bool(0.4));
        self.note(&format!("{machine}: {}", if pause { "pause" } else { "resume" }));
        let engine = self.machines[machine].node.engine.clone();
        self.calls.push(tokio::spawn(async move {
            // An error leaves open whether it happened; at rest somebody resumes until it has.
            if pause { drop(engine.pause(&author()).await) } else { drop(engine.resume(&author()).await) }
        }));
    }

    fn wait(&mut self) {
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

    /// As SIGSTOP and SIGCONT: its clock stands still, and when it goes on it may write before it notices.
    async fn stop_or_go_on(&mut self) {
        let machine = self.any_machine();
        match self.machines[machine].stopped {
            None => {
                self.note(&format!("{machine}: stopped"));
                self.machines[machine].stopped = Some(Duration::ZERO);
            }
            Some(_) => self.go_on(machine).await,
        }
    }

    async fn go_on(&mut self, machine: usize) {
        let Some(behind) = self.machines[machine].stopped.take() else { return };
        self.note(&format!("{machine}: goes on after {behind:?}"));
        for actor in self.stage.actors().into_iter().filter(|actor| actor.node == machine) {
            if self.rng.random_bool(0.5) {
                actor.cue(Cue::Complete(0));
            }
        }
        self.settle().await;
        self.machines[machine].node.clock.advance(behind);
    }

    /// As far as that goes within one process: nothing is written any more but what the database has already.
    async fn kill(&mut self) {
        let machine = self.any_machine();
        self.note(&format!("{machine}: killed"));
        let fresh = self.machine(machine);
        let dead = std::mem::replace(&mut self.machines[machine], fresh);
        dead.node.shutdown.force();
        dead.ticking.into_values().chain(dead.waiting).for_each(|task| task.abort());
        dead.node.shutdown.finished().await;
    }

    fn drain(&mut self) {
        let machine = self.any_machine();
        if self.machines[machine].stopped.is_none() && !self.machines[machine].draining {
            self.note(&format!("{machine}: drains"));
            self.machines[machine].draining = true;
            self.machines[machine].node.shutdown.begin();
        }
    }

    /// A machine that has drained is started anew.
    fn replace_the_drained(&mut self) {
        for machine in 0..self.machines.len() {
            let Machine { ticks, draining, stopped, .. } = &self.machines[machine];
            if *draining && stopped.is_none() && ticks.running() == 0 {
                self.note(&format!("{machine}: has drained"));
                let fresh = self.machine(machine);
                let drained = std::mem::replace(&mut self.machines[machine], fresh);
                drained.node.engine.hub().drain();
                drained.ticking.into_values().chain(drained.waiting).for_each(|task| task.abort());
            }
        }
    }

    // Time.

    fn now(&self) -> Timestamp {
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
    async fn settle(&mut self) {
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
        let differences = differences(&self.database, &told).await;
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

    fn any_machine(&mut self) -> usize {
        self.rng.random_range(0..self.machines.len())
    }

    fn any_task(&mut self) -> Option<TaskId> {
        let record = locked(&self.record);
        let known = record.seen.len();
        (known > 0).then(|| *record.seen.keys().nth(self.rng.random_range(0..known)).expect("one of them"))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    fn note(&mut self, what: &str) {
        self.history.push(format!("{:>12.3?} {what}", self.elapsed.as_secs_f64()));
    }
}

async fn submitted(engine: Engine, submission: Submission, key: Option<(String, String)>, record: Arc<Mutex<Record>>) {
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

impl Record {
    fn expect(&mut self, holds: bool, what: &str, found: &dyn Debug) {
        if !holds {
            self.wrong.push(format!("not {what}: {found:?}"));
        }
    }

    /// A terminal status is left by a replay only, and revisions only grow.
    fn see(&mut self, id: TaskId, found: Option<(u64, Status)>) {
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

fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().expect("nobody panics while it is held")
}

#[test]
fn every_transaction_that_is_made_to_fail_exists() {
    let unknown: Vec<_> = TRANSACTIONS.into_iter().filter(|name| !metrics::TRANSACTIONS.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
