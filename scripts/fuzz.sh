#!/usr/bin/env bash
# Endless: the differential test with random seeds, or one cargo-fuzz target when named.
#
#   scripts/fuzz.sh                    random statements against MariaDB until a difference
#   scripts/fuzz.sh packets|sql_text|records     coverage-guided, needs nightly and cargo-fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "fuzz: needs nightly Rust and: cargo install cargo-fuzz" >&2; exit 1; }
    exec cargo +nightly fuzz run --features libfuzzer "$@"
fi
exec python3 tests/run.py --only differential --binary "${CARGO_TARGET_DIR:-target}/debug/manxdb" -- --forever
