#!/usr/bin/env bash
# Holds the running program to its own OpenAPI document: every check of schemathesis, 200 examples per operation, a fixed seed; on the embedded defaults and an empty
# data folder, or with --key on a service with configured callers, which is called with a key and, where that is to be refused, without. Exits 0 when nothing is
# found. Takes some minutes.
#   scripts/schemathesis.sh [--key] [PROGRAM] [-- more options of `st run`, such as --include-path /task]
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5

with_key=
if [ "${1:-}" = "--key" ]; then with_key=1; shift; fi
program=${CARGO_TARGET_DIR:-target}/debug/protocol-bridge
if [ $# -gt 0 ] && [ "$1" != "--" ]; then program=$1; shift; else cargo build --quiet; fi
[ "${1:-}" != "--" ] || shift

# Its own environment, of one version, kept for the next run.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/protocol-bridge/schemathesis-$version
[ -x "$tools/bin/st" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet "schemathesis==$version"; }

folder=$(mktemp -d)
authorization=()
: >"$folder/config.toml"
if [ -n "$with_key" ]; then
    key=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    cat >"$folder/config.toml" <<END
[[callers]]
name = "schemathesis"
roles = ["legacy", "submit", "read", "admin"]
key_sha256 = "$(printf %s "$key" | sha256sum | cut -d ' ' -f 1)"
END
    authorization=(--header "Authorization: Bearer $key")
fi
env -i PATH="$PATH" PROTOCOL_BRIDGE__HTTP__LISTEN=127.0.0.1:0 PROTOCOL_BRIDGE__DATA_DIR="$folder/data" PROTOCOL_BRIDGE__TELEMETRY__FORMAT=json \
    "$program" serve --config "$folder/config.toml" 2>"$folder/log" &
service=$!
trap 'kill -9 $service 2>/dev/null; wait $service 2>/dev/null || true; rm -rf "$folder"' EXIT

address=
for _ in $(seq 300); do
    address=$(sed -n 's/.*"address":"\(127\.0\.0\.1:[0-9]*\)".*/\1/p' "$folder/log" | head -n 1)
    [ -z "$address" ] || break
    kill -0 $service 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "the program does not listen" >&2; cat "$folder/log" >&2; exit 1; }

status=0
(cd "$folder" && "$tools/bin/st" --config-file "$OLDPWD/scripts/schemathesis.toml" run "http://$address/openapi.json" \
    --checks all --max-response-time 60 --max-examples 200 --seed 1 --generation-deterministic --no-color "${authorization[@]}" "$@") || status=$?
kill -0 $service 2>/dev/null || { echo "the program died" >&2; tail -n 20 "$folder/log" >&2; status=1; }
if grep -m 5 '"level":"ERROR"' "$folder/log" >&2; then echo "the log has errors (above)" >&2; status=1; fi
exit $status
