#!/usr/bin/env bash
# Measures the budgets of docs/benchmarks.md: scripts/bench.sh [throughput pickup post answer million gauges slow-host reports start crash]; all of them without a name.
# Wants a quiet machine, PostgreSQL's programs, and node for the other queues that the throughput is compared with.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v npm >/dev/null && [ ! -d benches/peers/node_modules ]; then
  npm ci --prefix benches/peers --no-audit --no-fund
fi
exec cargo bench --quiet --bench budgets -- "$@"
