#!/usr/bin/env python3
"""Breaks the engine on purpose, one guard at a time, and sees whether the simulation notices. Not in CI: each mutant is a build of a minute or two.

    scripts/mutants.py [NAME]…        SIMULATION_SEEDS=400 by default

Works on a copy; ends with 0 if the unbroken copy passes and every mutant is found.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name: file, how often, what, and what instead.
MUTANTS = {
    "an end without its lease token": (
        "src/store/task/ending.rs", 1,
        "AND task.lease_token = unhex(ended.value ->> 'token') AND +status", "AND +status",
    ),
    "a claim of what is held already": (
        "src/store/task/claim.rs", 1,
        "WHERE task.id = unhex(wanted.value ->> 'task') AND +status = 'PENDING' AND", "WHERE task.id = unhex(wanted.value ->> 'task') AND",
    ),
    "a claim before its time": (
        "src/store/task/claim.rs", 1,
        "AND +status = 'PENDING' AND +next_attempt_us <= $4", "AND +status = 'PENDING' AND +next_attempt_us <= $4 + 3600000000",
    ),
    "a rescue of a lease that was renewed": (
        "src/store/task/claim.rs", 2,
        "AND lease_token = $2 AND lease_until_us < $3", "AND lease_token = $2 AND $3 > 0",
    ),
    "a renewal that is counted from its answer": (
        "src/engine/keeper.rs", 1,
        "self.core.leases.renewed(&asked, &renewed, sent + self.core.config.lease);",
        "let _ = sent; self.core.leases.renewed(&asked, &renewed, self.core.clock.monotonic() + self.core.config.lease * 4);",
    ),
    "an end without its event": ("src/engine/finish.rs", 1, "if !events.is_empty() {", "if events.len() > 1 {"),
    "a failure without its dead letter": ("src/engine/finish.rs", 1, "if !letters.is_empty() {", "if letters.len() > 1 {"),
    "an end that leaves its attempt open": ("src/engine/finish.rs", 1, "    attempt::close(tx, &closings).await?;", "    let _ = &closings;"),
    "a cancel of what has ended": (
        "src/store/task/ending.rs", 1, "WHERE id = $1 AND status IN ('PENDING', 'IN_PROGRESS') RETURNING", "WHERE id = $1 AND status <> 'CANCELLED' RETURNING",
    ),
    "keys that expire with their task active": (
        "src/store/idempotency.rs", 1, "UPDATE idempotency_key SET expires_us = NULL WHERE task_id = $1", "UPDATE idempotency_key SET expires_us = expires_us WHERE task_id = $1",
    ),
}


def simulate(copy):
    """Whether the simulation passes in the copy, and what it said if not."""
    environment = {"SIMULATION_SEED": "1", "SIMULATION_SEEDS": "400", **os.environ, "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    build = ["cargo", "test", "--quiet", "--test", "it", "--no-run"]
    subprocess.run(build, cwd=copy, env=environment, check=True)
    started = time.monotonic()
    run = subprocess.run(
        ["cargo", "test", "--quiet", "--test", "it", "--", "--exact", "simulation::many_seeds_add_up_on_sqlite"],
        cwd=copy, env=environment, capture_output=True, text=True, check=False,
    )
    said = [line for line in run.stdout.splitlines() if line.startswith("seed ")]
    after = run.stdout.splitlines()
    found = after[after.index(said[0]) + 1] if said else run.stdout[-400:] + run.stderr[-400:]
    return run.returncode == 0, f"{said[0] if said else ''}: {found[:140]}", time.monotonic() - started


def main():
    wanted = sys.argv[1:] or list(MUTANTS)
    unknown = [name for name in wanted if name not in MUTANTS]
    if unknown:
        raise SystemExit(f"there is no mutant {unknown}; there are {list(MUTANTS)}")
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("target", "node_modules", "data"))
        passes, said, took = simulate(copy)
        if not passes:
            raise SystemExit(f"the unbroken copy fails: {said}")
        print(f"{'unbroken':45} passes in {took:.0f} s", flush=True)
        for name in wanted:
            file, times, what, instead = MUTANTS[name]
            path = copy / file
            text = path.read_text()
            if text.count(what) != times:
                raise SystemExit(f"{name}: {file} says {text.count(what)} times, not {times}: {what}")
            path.write_text(text.replace(what, instead))
            passes, said, took = simulate(copy)
            path.write_text(text)
            print(f"{name:45} {'SURVIVES' if passes else f'found after {took:.1f} s by {said}'}", flush=True)
            if passes:
                survivors.append(name)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
