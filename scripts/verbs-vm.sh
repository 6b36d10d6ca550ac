#!/usr/bin/env bash
# Runs the conformance suite of fabrics over real verbs, without hardware for them: boots a small
# virtual machine in which the kernel's SoftRoCE (rdma_rxe) is a network card, and in it the test
# program with libfabric's provider `verbs;ofi_rxm`. A test of function, never a benchmark: all of
# the machine is emulated (QEMU's TCG), so that any host will do. Takes a minute behind
# the build.
#
#   make verbs
#
# Installs QEMU, busybox and the user space of RDMA with apt, and unpacks a Debian kernel into a
# cache without installing it. On hardware, the same suite runs as
#
#   MANXDB_FABRIC_PROVIDER='verbs;ofi_rxm' MANXDB_FABRIC_AT=ADDRESS \
#     cargo test -p manxdb-fabric --features libfabric --test libfabric -- --ignored a_named_provider
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PROVIDER="${MANXDB_FABRIC_PROVIDER:-verbs;ofi_rxm}"
readonly SECONDS_MAX="${VERBS_VM_SECONDS:-1800}"
readonly CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/manxdb/verbs-vm"
readonly TEST=a_named_provider_does_what_the_others_do
# In this order; each with what it needs. veth: two ends of a cable, of which one gets the card.
readonly MODULES=(crc32_generic veth ib_uverbs rdma_ucm rdma_rxe)

say() { printf 'verbs-vm: %s\n' "$*"; }
die() { printf 'verbs-vm: error: %s\n' "$*" >&2; exit 1; }

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_tools() {
    say "installing with apt: QEMU, busybox, the user space of RDMA, libfabric"
    as_root apt-get update -qq
    as_root apt-get install -y -qq --no-install-recommends qemu-system-x86 busybox-static cpio kmod \
        iproute2 rdma-core ibverbs-providers libfabric-dev >/dev/null
}

# Unpacks the kernel that Debian would install.
fetch_kernel() {
    local package
    package="$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ {print $2}')"
    [ -n "$package" ] || die "apt knows no linux-image-amd64: this needs Debian's packages"
    kernel="$CACHE/$package"
    if [ ! -f "$kernel/done" ]; then
        say "unpacking $package into $kernel"
        mkdir -p "$kernel"
        (cd "$kernel" && apt-get download -qq "$package" 2>/dev/null && dpkg -x ./*.deb . && rm ./*.deb)
        release="$(basename "$kernel"/lib/modules/*)"
        depmod -b "$kernel" "$release"
        touch "$kernel/done"
    fi
    release="$(basename "$kernel"/lib/modules/*)"
}

build_test() {
    say "building the test program"
    program="$(cargo test -p manxdb-fabric --features libfabric --test libfabric --no-run --locked \
        --message-format=json | sed -n 's/.*"executable":"\([^"]*libfabric-[^"]*\)".*/\1/p')"
    [ -x "$program" ] || die "cargo named no test program"
}

# with_libraries FILE…: copies programs or libraries into the machine, and all that they load.
with_libraries() {
    local file library
    for file in "$@"; do
        install -D "$file" "$root$file"
        { ldd "$file" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
            [ -e "$root$library" ] || install -D "$library" "$root$library"
        done
    done
}

# What the machine does: a card, then the test, then an end.
write_init() {
    local order
    order="$(for module in "${MODULES[@]}"; do
        modprobe -d "$kernel" -S "$release" --show-depends "$module" | sed -n 's/^insmod //p'
    done | awk '!seen[$1]++ {print $1}')"
    {
        cat <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mkdir -p /dev/shm /proc /sys /tmp
/bin/busybox mount -t tmpfs none /dev/shm
/bin/busybox mount -t tmpfs none /tmp
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
END
        for module in $order; do
            install -D "$module" "$root/modules/$(basename "$module")"
            echo "$insmod /modules/$(basename "$module")"
        done
        cat <<END
$ip link set lo up
$ip link add v0 type veth peer name v1
$ip addr add 10.7.0.1/24 dev v0
$ip link set v0 up
$ip link set v1 up
$rdma link add rxe0 type rxe netdev v0
$rdma link show
export MANXDB_FABRIC_PROVIDER='$PROVIDER' MANXDB_FABRIC_AT=10.7.0.1 FI_LOG_LEVEL='${FI_LOG_LEVEL:-}'
# SoftRoCE's queues are short, and ofi_rxm asks for one that all of a universe fits into: here two.
export FI_UNIVERSE_SIZE=2
/test --ignored --exact --nocapture $TEST
echo "verbs-vm: the test ended with \$?"
/bin/busybox poweroff -f
END
    } >"$root/init"
    chmod +x "$root/init"
}

build_root() {
    root="$(mktemp -d)"
    trap 'rm -rf "$root"' EXIT
    insmod="$(command -v insmod)" ip="$(command -v ip)" rdma="$(command -v rdma)"
    install -D "$(command -v busybox)" "$root/bin/busybox"
    with_libraries "$insmod" "$ip" "$rdma" "$program" \
        /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so
    install -D /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/rxe.driver"
    mv "$root$program" "$root/test"
    mkdir -p "$root/dev" "$root/proc" "$root/sys"
    write_init
    (cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$CACHE/initramfs.gz"
}

boot() {
    say "booting (at most $SECONDS_MAX s)"
    timeout "$SECONDS_MAX" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 2048 -nographic \
        -nic none -no-reboot -kernel "$kernel"/boot/vmlinuz-* -initrd "$CACHE/initramfs.gz" \
        -append "console=ttyS0 quiet panic=-1" | tee "$CACHE/console.log" || true
    grep -q "verbs-vm: the test ended with 0" "$CACHE/console.log" \
        || die "the suite did not pass; all that the machine said: $CACHE/console.log"
    say "the suite passes over $PROVIDER"
}

install_tools
fetch_kernel
build_test
build_root
boot
