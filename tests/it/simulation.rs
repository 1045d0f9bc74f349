//! Seeded simulations of several engines over one database; see [`crate::simulation_world`].
//!
//! `SIMULATION_SEED` names the first seed, `SIMULATION_SEEDS` how many: `scripts/simulate.sh` runs thousands. What was found is kept below by name.

use crate::{simulation_world::World, support::TestDatabase};
use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

const STEPS: usize = 150;
const THREADS: usize = 2;

/// One world on a thread of its own: its tasks take turns, so that one seed gives one history.
fn simulate<F>(seed: u64, database: impl Fn() -> F)
where
    F: Future<Output = TestDatabase>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let world = World::new(seed, database().await).await;
        // A quarter of them without faults of the database: what goes wrong there has a plainer history.
        let mut world = if seed.is_multiple_of(4) { world.without_faults() } else { world };
        world.live(STEPS).await;
    });
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

fn simulate_all<F>(seeds: u64, database: impl Fn() -> F + Sync)
where
    F: Future<Output = TestDatabase>,
{
    let first = number("SIMULATION_SEED").unwrap_or(1);
    let end = first + number("SIMULATION_SEEDS").unwrap_or(seeds);
    let next = AtomicU64::new(first);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end) {
                    simulate(seed, &database);
                }
            });
        }
    });
}

#[test]
fn many_seeds_add_up_on_sqlite() {
    simulate_all(60, TestDatabase::sqlite_in_memory);
}

#[test]
fn some_seeds_add_up_on_postgres() {
    simulate_all(12, TestDatabase::postgres);
}
