#!/usr/bin/env bash
# Endless: the differential test with random seeds, or one cargo-fuzz target when named.
#
#   scripts/fuzz.sh                              random statements against MariaDB until a difference
#   scripts/fuzz.sh TARGET                       coverage-guided, until a crash (nightly Rust)
#   scripts/fuzz.sh TARGET -- -max_total_time=180      what follows -- goes to libFuzzer
#   scripts/fuzz.sh --sanitizer none TARGET      without AddressSanitizer: builds faster, runs faster;
#                                                panics, overflows, hangs and memory are still found
#
# Targets: packets, resp, sql_text, template, records, witness, log (fuzz/src/lib.rs says what each asks).
# Inputs that reached something new are kept in fuzz/corpus/TARGET, a crash in fuzz/artifacts/TARGET.
# A crash that is mended becomes a test where the mistake was, or a line of fuzz/samples.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    bash scripts/setup.sh test
    cargo build --locked -p manxdb
    exec python3 tests/run.py --only differential --binary "${CARGO_TARGET_DIR:-target}/debug/manxdb" -- --forever
fi
bash scripts/setup.sh run
cargo +nightly --version >/dev/null 2>&1 || {
    echo "fuzz: needs nightly Rust: rustup toolchain install nightly" >&2
    exit 1
}
cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: installing cargo-fuzz (a few minutes, once)"
    cargo install --quiet --locked cargo-fuzz
}
# cargo-fuzz sets RUSTFLAGS, which hides those of .cargo/config.toml: without them the program does
# not find librocksdb.so.
library="$(sed -n 's/^ROCKSDB_LIB_DIR = "\(.*\)"$/\1/p' .cargo/config.toml)"
export RUSTFLAGS="${RUSTFLAGS:-}${library:+ -Clink-arg=-Wl,-rpath,$library}"
# Across crates there is nothing to optimise once coverage is counted, only minutes to wait.
export CARGO_PROFILE_RELEASE_LTO=off
options=(-timeout=20 -rss_limit_mb=2048)
separator=--
for argument in "$@"; do
    case "$argument" in
        sql_text | template) options+=(-dict=fuzz/sql.dict) ;;
        --) separator= ;;
    esac
done
exec cargo +nightly fuzz run --features libfuzzer --target-dir fuzz/target "$@" $separator "${options[@]}"
