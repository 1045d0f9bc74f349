//! The machines of a simulation: engines whose ticks are called one by one, that stand still, are killed, or drain and are started anew.

use crate::{
    engine_world::{Node, Setup, start_of_time},
    simulation_stage::Cue,
    simulation_world::World,
};
use protocol_bridge::{base::clock::Clock, domain::task::Kind, engine::Ticks};
use rand::RngExt as _;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tick {
    Relay,
    Mark,
    Consume,
    ClaimDue,
    Renew,
    Rescue,
    Look,
}

pub const TICKS: [Tick; 7] = [Tick::Relay, Tick::Mark, Tick::Consume, Tick::ClaimDue, Tick::Renew, Tick::Rescue, Tick::Look];

/// One engine, and what goes on in it.
pub struct Machine {
    pub node: Node,
    pub ticks: Arc<Ticks>,
    /// Loops run one tick after the other; one that waits for the clock is not called again.
    pub ticking: HashMap<Tick, JoinHandle<()>>,
    pub waiting: Vec<JoinHandle<()>>,
    /// Its clock stands still, and by how much it is behind.
    pub stopped: Option<Duration>,
    pub draining: bool,
}

impl World {
    pub fn machine(&mut self, number: usize) -> Machine {
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

    pub fn tick(&mut self, machine: usize, tick: Tick) {
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

    /// As SIGSTOP and SIGCONT: its clock stands still, and when it goes on it may write before it notices.
    pub async fn stop_or_go_on(&mut self) {
        let machine = self.any_machine();
        match self.machines[machine].stopped {
            None => {
                self.note(&format!("{machine}: stopped"));
                self.machines[machine].stopped = Some(Duration::ZERO);
            }
            Some(_) => self.go_on(machine).await,
        }
    }

    pub async fn go_on(&mut self, machine: usize) {
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
    pub async fn kill(&mut self) {
        let machine = self.any_machine();
        self.note(&format!("{machine}: killed"));
        let fresh = self.machine(machine);
        let dead = std::mem::replace(&mut self.machines[machine], fresh);
        dead.node.shutdown.force();
        dead.ticking.into_values().chain(dead.waiting).for_each(|task| task.abort());
        dead.node.shutdown.finished().await;
    }

    pub fn drain(&mut self) {
        let machine = self.any_machine();
        if self.machines[machine].stopped.is_none() && !self.machines[machine].draining {
            self.note(&format!("{machine}: drains"));
            self.machines[machine].draining = true;
            self.machines[machine].node.shutdown.begin();
        }
    }

    /// A machine that has drained is started anew.
    pub fn replace_the_drained(&mut self) {
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
}
