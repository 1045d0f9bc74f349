#!/usr/bin/env bash
# Three real processes on PostgreSQL and NATS JetStream (or one on SQLite), under load, while processes are killed and stopped and the servers restarted;
# at the end everything is reconciled. Not in CI. What it does and what it found: docs/reliability.md.
#
#   scripts/torture.sh [--minutes 10] [--seed N] [--binary PATH] [--sqlite] [--keep]
#
# Ends with 0 if nothing differs; otherwise it prints each difference and keeps its folder.
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --binary"*) ;; *) cargo build --release ;; esac
exec python3 scripts/torture.py --target "${CARGO_TARGET_DIR:-target}" "$@"
