#!/usr/bin/env bash
# Simulations of several engines over one database (tests/it/simulation.rs), many seeds: scripts/simulate.sh 2000 [FIRST_SEED]. What a seed finds is printed with
# its history; the same seed gives the same history again.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:?how many seeds}
first=${2:-1000}
echo "seeds $first to $((first + seeds - 1)) on SQLite, a twentieth of them on PostgreSQL"
SIMULATION_SEED=$first SIMULATION_SEEDS=$seeds cargo test --quiet --test it -- --exact simulation::many_seeds_add_up_on_sqlite
SIMULATION_SEED=$first SIMULATION_SEEDS=$(((seeds + 19) / 20)) cargo test --quiet --test it -- --exact simulation::some_seeds_add_up_on_postgres
