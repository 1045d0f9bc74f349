#!/usr/bin/env bash
# Deletes v1 (docs/removing-v1.md) in a copy of the sources and runs the tests of what stays; with --here in place, without running them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

remove() {
    rm -r src/bridge
    rm src/http/routes/merge_by_agenda.rs src/http/legacy_headers.rs src/cli/try_response.rs
    rm -r tests/it/bridge_*.rs tests/it/caller_*.rs tests/it/{dashboard_proof,process_gauges,process_rolling}.rs tests/it/support/{breaking_proxy,nginx,state_machine}.rs
    rm -r tests/java docs/java examples/agenda_state_machine benches/budgets/answer.rs scripts/held_calls.py scripts/nginx-default.sh
    sed -i -e '/^mod bridge_/d' -e '/^mod caller_/d' tests/it/main.rs
    sed -i -e '/^pub mod breaking_proxy/d' -e '/^pub mod nginx/d' -e '/^pub mod state_machine/d' tests/it/support/mod.rs
    # Marked blocks first, then marked lines.
    grep -rl 'goes with v1' src tests benches | while read -r file; do
        sed -i -e '/goes with v1: begin/,/goes with v1: end/d' -e '/\/\/ goes with v1$/d' "$file"
    done
    sed -i '\#/api/v1/protocol/merge/byAgenda/#d' docs/roles.md
    sed -i 's#"POST /api/v1/protocol/merge/byAgenda/{agendaId}", ##' scripts/schemathesis.toml
    # The list of who may name the bridge has nothing left to name, and there is nobody left to keep from it.
    cargo fmt
}

case "${1:-}" in
--here)
    cd "$root"
    remove
    exit
    ;;
"") ;;
*)
    echo "usage: scripts/remove-v1.sh [--here]" >&2
    exit 2
    ;;
esac

copy=$(mktemp -d)
built=${CARGO_TARGET_DIR:-$root/target}
# A folder of its own, so that the program at hand stays the one with v1; the built dependencies of the sources serve here too.
export CARGO_TARGET_DIR="$built/without-v1"
trap 'rm -rf "$copy" "$CARGO_TARGET_DIR"' EXIT
mkdir -p "$CARGO_TARGET_DIR/debug"
for part in .fingerprint build deps; do
    [ ! -d "$built/debug/$part" ] || cp -al "$built/debug/$part" "$CARGO_TARGET_DIR/debug/"
done
# What is written here must not be written through a link into the built sources.
rm -rf "$CARGO_TARGET_DIR"/debug/{.fingerprint,build}/protocol-bridge-* \
    "$CARGO_TARGET_DIR"/debug/deps/{,lib}{protocol_bridge,it,budgets,agenda_state_machine}-*
git -C "$root" ls-files -z --cached --others --exclude-standard | (cd "$root" && tar --null --files-from=- --create --file=-) | tar --extract --file=- --directory="$copy"
cd "$copy"
remove
cargo check --all-targets
INSTA_UPDATE=always cargo nextest run --test it -E 'test(http_openapi::it_changes_only_on_purpose)'
cargo nextest run --no-fail-fast
echo "v1 is gone, and what stays passes its tests"
