#!/usr/bin/env bash
# Endless: the differential test with random seeds, or one cargo-fuzz target when named.
#
#   scripts/fuzz.sh                              random statements against MariaDB until a difference
#   scripts/fuzz.sh packets|sql_text|records     coverage-guided, until a crash (nightly Rust)
#   scripts/fuzz.sh packets -- -max_total_time=180     what follows -- goes to libFuzzer
#
# A crash is written to fuzz/artifacts/TARGET; it becomes a test in fuzz/tests/short.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    exec python3 tests/run.py --only differential --binary "${CARGO_TARGET_DIR:-target}/debug/manxdb" -- --forever
fi
cargo +nightly --version >/dev/null 2>&1 || {
    echo "fuzz: needs nightly Rust: rustup toolchain install nightly" >&2
    exit 1
}
cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: installing cargo-fuzz (a few minutes, once)"
    cargo install --quiet --locked cargo-fuzz
}
exec cargo +nightly fuzz run --features libfuzzer "$@"
