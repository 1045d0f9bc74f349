#!/usr/bin/env bash
# The seed's sequence with nginx and the client as they come: both give up after 60 s, the protocol takes more than two minutes. CI plays it with 1 s.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --example agenda_state_machine
exec cargo nextest run --test it --run-ignored only -E 'test(nginx_and_client_as_they_come)'
