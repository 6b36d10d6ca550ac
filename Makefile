# ManxDB's commands. `make help` lists them; each installs what it needs first (scripts/setup.sh).
# ROCKSDB=source builds the vendored RocksDB (33 CPU minutes) instead of linking the prebuilt one; each
# opens the other's data.

ROCKSDB ?= prebuilt
SERVE_ARGS ?=
TEST_ARGS ?=
NIGHT_SEEDS ?= 20
SOAK ?= dast
NIGHT_DIFFERENTIAL ?= 60
export ROCKSDB

.DEFAULT_GOAL := help
.PHONY: help setup run test quick night lint fmt dist bench book compat fuzz soak verbs

help: ## Lists these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Installs what building and running need, saying each step
	@bash scripts/setup.sh run

run: setup ## Builds the server and serves MySQL on 127.0.0.1:3306 (SERVE_ARGS="--data DIR …")
	cargo run --profile quick -p manxdb -- serve $(SERVE_ARGS)

test: ## All tests: cargo, real clients, SQL files, differential, crash (TEST_ARGS="--only NAME")
	@bash scripts/setup.sh test
	@python3 tests/run.py $(TEST_ARGS)

quick: ## Some minutes: unit tests, the SQL files in one process, a client of each kind
	@bash scripts/setup.sh test
	@python3 tests/run.py --tier quick $(TEST_ARGS)

# `make soak` and `make fuzz` go on for as long as they are let.
night: ## Hours: all tests with NIGHT_SEEDS times the seeds, faults for half an hour, random statements
	@bash scripts/setup.sh test
	@MANXDB_SEEDS=$(NIGHT_SEEDS) MANXDB_FAULTS_SECONDS=1800 MANXDB_CRASH_CYCLES=400 python3 tests/run.py $(TEST_ARGS)
	@python3 tests/run.py --only differential -- --first $$(date +%s) --seeds $(NIGHT_DIFFERENTIAL)

lint: ## rustfmt, clippy with warnings denied, cargo deny
	@bash scripts/setup.sh lint
	cargo fmt --all --check
	cargo clippy --workspace --features manxdb/libfabric --all-targets --locked -- -D warnings
	@bash scripts/deny.sh

fmt: ## Formats the Rust code
	cargo fmt --all

dist: ## What a user installs: archive, .deb, Containerfile, checksums, in target/dist
	@bash scripts/setup.sh dist
	cargo build --release --locked -p manxdb -p manxdb-lab-cli
	@python3 scripts/dist.py --binary target/release/manxdb --out target/dist $(DIST_ARGS)

bench: ## sysbench and Lobsters on ManxDB and MariaDB, alternating; writes docs/benchmarks.md
	@bash scripts/setup.sh bench
	cargo build --release --locked -p manxdb -p manxdb-lab-cli
	@python3 scripts/bench.py $(BENCH_ARGS)

book: ## The docs as one site, in the directory book (needs mdbook, and says so)
	@python3 scripts/book.py

compat: ## SQLAlchemy's and Django's own suites and our statements on ManxDB and MariaDB; writes COMPAT.md
	@bash scripts/setup.sh test
	cargo build --locked -p manxdb
	@python3 scripts/compat.py $(COMPAT_ARGS)

fuzz: ## Endless: random statements against MariaDB, or FUZZ_ARGS="packets|resp|sql_text|template|records|witness|log"
	@bash scripts/fuzz.sh $(FUZZ_ARGS)

soak: setup ## Endless: Redis killed 300 times, then DAST under faults, seed after seed (SOAK_ARGS="FIRST_SEED"); SOAK=curp: 1,000 seeds of CURP
ifeq ($(SOAK),curp)
	MANXDB_SEEDS=20 cargo test --release --locked -p manxdb-curp -- --nocapture faults mutants::without
else
	@MANXDB_REDIS_CYCLES=300 python3 tests/run.py --only redis
	cargo run --release --locked -p manxdb-lab --bin soak -- $(SOAK_ARGS)
endif

verbs: setup ## The suite of fabrics over RDMA verbs, in a small virtual machine with an emulated card
	@bash scripts/verbs-vm.sh
