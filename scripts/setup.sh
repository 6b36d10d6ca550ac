#!/usr/bin/env bash
# Installs what is missing for one purpose and says each step; quick when nothing is missing.
#
#   scripts/setup.sh run     Rust is there, C++ headers for bindgen, RocksDB
#   scripts/setup.sh test    run + MariaDB (client and comparison server), Python (clients, and
#                          moto, an S3 server for tests of compactions), Node, Go,
#                          Java (clients, and a HDFS of Hadoop's for the same tests), PHP, Ruby
#                          (clients that the tests drive), etcd (for control planes of
#                          compactions, and coordinators),
#                          libfabric with its headers (for the feature of that name), what makes
#                          packages and an empty root to install them into
#   scripts/setup.sh lint    run + cargo-deny, libfabric with its headers
#   scripts/setup.sh bench   run + MariaDB, sysbench
#   scripts/setup.sh dist    run + what makes packages
#
# ROCKSDB=prebuilt (default) links the official RocksDB library of exactly the version the
# `rocksdb` crate is made for, out of its Maven artifact; ROCKSDB=source builds the vendored one.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PURPOSE="${1:-run}"
readonly ROCKSDB_VERSION=11.8.1
readonly ROCKSDB_JAR_SHA256=628ed387887f4a431df480857954df2a28b4389bfe24858ccdec611cabf65dbf
readonly CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/manxdb"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif have sudo; then sudo -n "$@" || sudo "$@"; else
        die "need root to run: $* (install sudo, or run it yourself)"
    fi
}

# A full disk shows late, as whatever happened to be written then: better to hear of it before.
warn_of_full_disk() {
    local wanted="$1" free
    free="$(df --output=avail -BG "$(dirname "${CARGO_TARGET_DIR:-$PWD/target}")" 2>/dev/null | tr -dc '0-9')" || return 0
    [ -z "$free" ] || [ "$free" -ge "$wanted" ] \
        || say "warning: $free GB of disk are free, and a build from nothing takes up to $wanted"
}

apt_wanted=()
# need_command COMMAND PACKAGE…: remembers the packages when the command is missing.
need_command() {
    local command="$1"; shift
    have "$command" || apt_wanted+=("$@")
}

install_apt_packages() {
    [ "${#apt_wanted[@]}" -gt 0 ] || return 0
    have apt-get || die "missing: ${apt_wanted[*]} (no apt-get here; install them yourself)"
    say "installing with apt: ${apt_wanted[*]}"
    as_root apt-get update -qq || die "apt-get update failed"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${apt_wanted[@]}" >/dev/null || die "apt could not install: ${apt_wanted[*]}"
}

require_rust() {
    have cargo || die "Rust is missing: install it from https://rustup.rs (1.90 or newer), then run again"
    local version
    version="$(rustc --version | sed -E 's/rustc ([0-9]+)\.([0-9]+).*/\1 \2/')"
    read -r major minor <<<"$version"
    if [ "$major" -eq 1 ] && [ "$minor" -lt 90 ]; then
        die "Rust 1.$minor is too old, ManxDB needs 1.90: rustup update stable"
    fi
}

# The C interface. libclang-cpp, which other packages bring along, is another library.
have_libclang() {
    compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null \
        || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null
}

want_build_packages() {
    need_command cc build-essential
    need_command g++ build-essential
    need_command pkg-config pkg-config
    # bindgen reads RocksDB's C header through libclang.
    have_libclang || [ -n "${LIBCLANG_PATH:-}" ] || apt_wanted+=(libclang-dev clang)
    if [ "${ROCKSDB:-prebuilt}" = prebuilt ] && [ ! -f "$(rocksdb_directory)/librocksdb.so" ]; then
        need_command mvn maven
        need_command unzip unzip
    fi
}

# For the feature `libfabric` of crates/fabric, which nothing else needs.
want_libfabric() {
    pkg-config --exists libfabric 2>/dev/null || apt_wanted+=(libfabric-dev)
}

want_packaging() {
    need_command strip binutils
    need_command patchelf patchelf
    need_command dpkg-shlibdeps dpkg-dev
    # scripts/dist.py reads Cargo.toml with a module of Python 3.11.
    need_command python3 python3
}

want_test_packages() {
    # The -core package is the server's programs without a service that takes port 3306.
    need_command mariadb mariadb-client
    need_command mariadbd mariadb-server-core
    # What the Redis server is compared with, and its command line.
    need_command redis-server redis-server
    need_command redis-cli redis-tools
    # What the console is looked at with; Ubuntu has it as a snap only, and its suite is skipped there.
    if grep -q '^ID=debian' /etc/os-release 2>/dev/null; then need_command chromium chromium; fi
    # What docs/quick-start.md asks with.
    need_command curl curl
    need_command python3 python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || apt_wanted+=(python3-venv)
    need_command node nodejs
    need_command npm npm
    need_command go golang-go
    need_command javac default-jdk-headless
    need_command mvn maven
    php -r 'exit(extension_loaded("mysqli") && extension_loaded("pdo_mysql") ? 0 : 1);' 2>/dev/null \
        || apt_wanted+=(php-cli php-mysql)
    ruby -e 'require "active_record"; require "mysql2"' 2>/dev/null \
        || apt_wanted+=(ruby ruby-activerecord ruby-mysql2)
    need_command mmdebstrap mmdebstrap
}

rocksdb_directory() { printf '%s/rocksdb-%s' "$CACHE" "$ROCKSDB_VERSION"; }

# Name of the library for this machine inside the jar.
rocksdb_member() {
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) echo librocksdbjni-linux64.so ;;
        Linux-aarch64) echo librocksdbjni-linux-aarch64.so ;;
        Linux-ppc64le) echo librocksdbjni-linux-ppc64le.so ;;
        Linux-riscv64) echo librocksdbjni-linux-riscv64.so ;;
        Linux-s390x) echo librocksdbjni-linux-s390x.so ;;
        *) die "no prebuilt RocksDB for $(uname -s) $(uname -m): use ROCKSDB=source" ;;
    esac
}

fetch_rocksdb() {
    local directory jar
    directory="$(rocksdb_directory)"
    [ -f "$directory/librocksdb.so" ] && return 0
    say "fetching the prebuilt RocksDB $ROCKSDB_VERSION"
    mkdir -p "$directory"
    (cd "$directory" && mvn -q -B dependency:copy \
        -Dartifact="org.rocksdb:rocksdbjni:$ROCKSDB_VERSION" -DoutputDirectory="$directory") \
        || die "Maven could not fetch RocksDB; try again, or use ROCKSDB=source"
    jar="$directory/rocksdbjni-$ROCKSDB_VERSION.jar"
    printf '%s  %s\n' "$ROCKSDB_JAR_SHA256" "$jar" | sha256sum --check --quiet \
        || die "$jar is not the file we know (wrong checksum); remove it and try again"
    # Through a temporary name, so that an interrupted run leaves no half library behind.
    unzip -p "$jar" "$(rocksdb_member)" >"$directory/librocksdb.so.part"
    chmod 755 "$directory/librocksdb.so.part"
    mv "$directory/librocksdb.so.part" "$directory/librocksdb.so"
    rm -f "$jar"
}

# Writes .cargo/config.toml only when it changes: a new time stamp would rebuild everything.
write_cargo_config() {
    local directory wanted
    directory="$(rocksdb_directory)"
    if [ "${ROCKSDB:-prebuilt}" = source ]; then
        wanted="# ROCKSDB=source: the vendored RocksDB is built and linked in."
    else
        wanted="[env]
ROCKSDB_LIB_DIR = \"$directory\"
[build]
rustflags = [\"-C\", \"link-arg=-Wl,-rpath,$directory\"]"
    fi
    mkdir -p .cargo
    if [ ! -f .cargo/config.toml ] || [ "$(cat .cargo/config.toml)" != "$wanted" ]; then
        say "writing .cargo/config.toml (RocksDB: ${ROCKSDB:-prebuilt})"
        printf '%s\n' "$wanted" >.cargo/config.toml
    fi
}

# A Python environment of our own; rebuilt when the pinned versions change.
make_python_environment() {
    local pins=tests/clients/python/requirements.txt stamp=.venv/.manxdb-pins
    [ -f "$pins" ] || return 0
    cmp -s "$pins" "$stamp" && return 0
    say "making .venv with the Python clients"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$pins" \
        || die "pip could not install $pins"
    cp "$pins" "$stamp"
}

install_node_clients() {
    local folder=tests/clients/node
    [ -f "$folder/package-lock.json" ] || return 0
    cmp -s "$folder/package-lock.json" "$folder/node_modules/.manxdb-pins" && return 0
    say "installing the Node clients"
    (cd "$folder" && npm ci --silent --no-audit --no-fund) || die "npm could not install $folder"
    cp "$folder/package-lock.json" "$folder/node_modules/.manxdb-pins"
}

# Maven keeps the JVM's clients and its own plugins in its repository; compiling fetches both.
install_jvm_clients() {
    local pins=tests/clients/jvm/pom.xml target="${CARGO_TARGET_DIR:-$PWD/target}/clients-jvm"
    [ -f "$pins" ] || return 0
    cmp -s "$pins" "$target/.manxdb-pins" && return 0
    say "fetching the JVM clients with Maven"
    mvn -q -B -f "$pins" -Dsuite.target="$target" compile || die "Maven could not build $pins"
    cp "$pins" "$target/.manxdb-pins"
}

# Hadoop's small HDFS for tests of compactions: Maven keeps its jars, the file says where they are.
fetch_hdfs() {
    local pins=tests/hdfs/pom.xml target="${CARGO_TARGET_DIR:-$PWD/target}/hdfs"
    [ -f "$pins" ] || return 0
    cmp -s "$pins" "$target/.manxdb-pins" && return 0
    say "fetching Hadoop with Maven, for a HDFS that tests start (187 jars, a few minutes, once)"
    mkdir -p "$target"
    mvn -q -B -f "$pins" dependency:build-classpath -Dmdep.outputFile="$target/classpath" \
        || die "Maven could not fetch what $pins names"
    cp "$pins" "$target/.manxdb-pins"
}

# RocksDB for Java, for programs that tests give a compaction service to.
fetch_rocksdb_for_java() {
    local directory="${CARGO_TARGET_DIR:-$PWD/target}/library"
    [ -f "$directory/rocksdbjni-$ROCKSDB_VERSION.jar" ] && return 0
    say "fetching RocksDB $ROCKSDB_VERSION for Java"
    mkdir -p "$directory"
    mvn -q -B dependency:copy -Dartifact="org.rocksdb:rocksdbjni:$ROCKSDB_VERSION" \
        -DoutputDirectory="$directory" || die "Maven could not fetch RocksDB for Java; try again"
}

# etcd's program out of Debian's package, which is not installed: that would start a service.
fetch_etcd() {
    local target="$CACHE/etcd"
    { have etcd || [ -x "$target/etcd" ]; } && return 0
    have apt-get && have dpkg-deb || die "etcd is missing, which tests start: install it yourself"
    say "fetching etcd, which tests start"
    local unpacked="$target/unpacked"
    rm -rf "$unpacked" && mkdir -p "$unpacked"
    (cd "$unpacked" && { apt-get download -qq etcd-server 2>/dev/null \
        || { as_root apt-get update -qq && apt-get download -qq etcd-server; }; } \
        && dpkg-deb -x etcd-server_*.deb .) || die "apt could not fetch etcd-server"
    mv "$unpacked/usr/bin/etcd" "$target/etcd"
    rm -rf "$unpacked"
}

install_cargo_deny() {
    cargo deny --version >/dev/null 2>&1 && return 0
    say "installing cargo-deny (a few minutes, once)"
    cargo install --quiet --locked cargo-deny || die "cargo could not install cargo-deny"
}

require_rust
want_build_packages
case "$PURPOSE" in
    run) warn_of_full_disk 4 ;;
    test) warn_of_full_disk 10; want_test_packages; want_libfabric; want_packaging ;;
    lint) want_libfabric ;;
    bench)
        need_command mariadb mariadb-client
        need_command mariadbd mariadb-server-core
        need_command sysbench sysbench
        ;;
    dist) warn_of_full_disk 4; want_packaging ;;
    *) die "unknown purpose '$PURPOSE': run, test, lint, bench or dist" ;;
esac
install_apt_packages
[ "${ROCKSDB:-prebuilt}" = source ] || fetch_rocksdb
write_cargo_config
case "$PURPOSE" in
    test)
        make_python_environment; install_node_clients; install_jvm_clients
        fetch_hdfs; fetch_rocksdb_for_java; fetch_etcd
        ;;
    lint) install_cargo_deny ;;
esac
