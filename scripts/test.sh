#!/usr/bin/env bash
# Checks and all tests. Without a flag it names what is missing and how to get it; with --install it installs it first (Debian, as root or with sudo).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/tools.sh
source scripts/tools.sh

missing_packages=() missing_programs=() notes=()
while IFS='|' read -r package shown purpose; do
    [ -n "$package" ] || continue
    present "$shown" || { missing_packages+=("$package"); notes+=("$package: $purpose"); }
done <<<"$DEBIAN_PACKAGES"
while IFS='|' read -r package program purpose; do
    [ -n "$package" ] || continue
    present "$program" || { missing_programs+=("$package"); notes+=("$package: $purpose"); }
done <<<"$CARGO_PACKAGES"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install_missing() {
    if [ ${#missing_packages[@]} -gt 0 ]; then
        # Debian would start a cluster of its own, which nobody needs here.
        as_root mkdir -p /etc/postgresql-common/createcluster.d
        echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/protocol-bridge.conf >/dev/null
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing_packages[@]}"
    fi
    for program in "${missing_programs[@]}"; do
        # A tool that runs for seconds is not worth minutes of optimising; its build is kept apart from ours and removed.
        echo "installing $program (a few minutes)"
        CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 \
            CARGO_TARGET_DIR="$tools_target" cargo install --locked --quiet "$program"
    done
    rm -rf "$tools_target"
}

case "${1:-}" in
--install)
    tools_target=$(mktemp -d)
    trap 'rm -rf "$tools_target"' EXIT
    install_missing
    ;;
"")
    if [ ${#notes[@]} -gt 0 ]; then
        echo "missing:"
        printf '  %s\n' "${notes[@]}"
        echo "get it with: scripts/test.sh --install"
        [ ${#missing_packages[@]} -eq 0 ] || echo "        or: apt-get install --no-install-recommends ${missing_packages[*]}"
        [ ${#missing_programs[@]} -eq 0 ] || echo "        or: cargo install --locked ${missing_programs[*]}"
        exit 1
    fi
    ;;
*)
    echo "usage: scripts/test.sh [--install]" >&2
    exit 2
    ;;
esac

scripts/check.sh
echo "== doc tests"
cargo test --doc --quiet
echo "== tests"
cargo nextest run
