#!/usr/bin/env bash
# Everything but the tests that CI looks at. Files that tests keep up to date (schemas, snapshots, tables in the documentation) are compared by those tests.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== format"
cargo fmt --check
echo "== licences, sources, bans"
cargo deny --log-level error check bans licenses sources
echo "== clippy"
cargo clippy --quiet --all-targets -- -D warnings
echo "== documentation links"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items
