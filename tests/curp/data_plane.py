"""Witnesses that are XDP programs, in a network namespace of the test's own."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from harness.checks import Skip, check, expect
from processes import AWAY, BINARY, PATIENCE, free_ports, seconds
from redis_cluster import Cluster, counted

SUITE = pathlib.Path(__file__).resolve().with_name("run.py")


def within_a_namespace(name):
    """Whether this process has a network and a BPF file system of its own; else it runs one that has.

    No program is ever given to the machine's own `lo`."""
    if os.environ.get("MANXDB_CURP_NAMESPACE"):
        return True
    enter = ["unshare", "--net", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        raise Skip("it needs unshare, CAP_SYS_ADMIN and CAP_NET_ADMIN")
    script = 'ip link set lo up && mount -t bpf bpf /sys/fs/bpf && exec "$@"'
    ran = subprocess.run([*enter, "sh", "-c", script, "sh", sys.executable, str(SUITE), name], text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE,
                         env={**os.environ, "MANXDB_CURP_NAMESPACE": "1"})
    if ran.stdout.startswith("SKIP"):
        raise Skip(ran.stdout.partition(": ")[2].strip())
    assert ran.returncode == 0 and "PASS" in ran.stdout, ran.stdout
    return False


def data_plane(*more, **how):
    """A cluster whose witnesses are XDP programs, or a skipped check where the machine has none."""
    try:
        return Cluster("--carrier", "xdp-generic", *more, **how)
    except AssertionError as error:
        if "this kernel" in str(error) or "this process lacks" in str(error):
            raise Skip(f"no XDP here: {error}") from error
        raise


def witnesses(cluster):
    """The nodes that are witnesses at the moment, with what they say of themselves."""
    nodes = cluster.status()["nodes"]
    used = nodes[0]["answer"]["notes"]["witnesses"].split()
    return [nodes[int(number)] for number in used]


@check
def witnesses_in_the_data_plane_commit_in_one_round_trip_without_their_processes():
    if not within_a_namespace("witnesses in the data plane commit"):
        return
    # Nobody is replaced while this check runs.
    cluster = data_plane("--lan-us", str(int(AWAY * 1e6)), suspect_ms=60_000)
    pins = pathlib.Path("/sys/fs/bpf/manxdb")
    try:
        used, = witnesses(cluster)
        expect(used["answer"]["notes"]["carrier"], "xdp-generic")
        expect(len([one for one in pins.glob("lo-*/*") if one.is_dir()]), 2, "a witness and a spare")
        link = cluster.proxy()
        link.call("PING")
        took = counted(link, lambda: [link.call("SET", f"key:{number}", number) for number in range(20)])
        assert took["fast"] >= 18 and took["fast"] + took.get("synced", 0) == 20, took
        took = min(seconds(lambda number=number: link.call("SET", f"more:{number}", 1)) for number in range(10))
        assert 2 * AWAY <= took < 4 * AWAY, f"{took * 1e3:.1f} ms is not one round trip of {2e3 * AWAY:.0f} ms"
        # Its process dies, and its records and answers do not.
        os.kill(used["answer"]["process"], signal.SIGKILL)
        took = counted(link, lambda: [link.call("SET", f"after:{number}", number) for number in range(20)])
        assert took["fast"] >= 18, took
        # Starts again, as the same witness: the view stays.
        view = cluster.notes(0)["view"]
        alone = subprocess.Popen([BINARY, "witness", "--cluster", str(cluster.data), "--node", str(used["number"])],
                                 stderr=subprocess.DEVNULL)
        try:
            cluster.wait_whole()
            took = counted(link, lambda: [link.call("SET", f"again:{number}", number) for number in range(20)])
            assert took["fast"] >= 18, took
            expect(cluster.notes(0)["view"], view)
            refused = cluster.notes(used["number"])["datagrams refused for their content"]
            attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            host, port = used["address"].split(":")
            for _ in range(50):
                attacker.sendto(os.urandom(200), (host, int(port)))
            grown = int(cluster.notes(used["number"])["datagrams refused for their content"]) - int(refused)
            expect(grown, 50, "hostile datagrams that the program has counted")
        finally:
            alone.terminate()
            alone.wait(timeout=PATIENCE)
    finally:
        cluster.close()
    left = subprocess.run([BINARY, "witness", "--remove", "--carrier", "xdp-generic", "--interface", "lo",
                           "--listen", used["address"]], text=True, check=False, capture_output=True, timeout=PATIENCE)
    expect(left.returncode, 0, left.stderr)
    expect([str(one) for one in pins.glob("*")], [], "left in the kernel")


@check
def a_new_master_recovers_from_a_witness_in_the_data_plane():
    if not within_a_namespace("recovers from a witness in the data plane"):
        return
    cluster = data_plane("--supervise")
    try:
        link = cluster.proxy()
        for round_ in range(3):
            for number in range(200):
                link.send("INCR", f"count:{number % 40}")
            expect([link.read() for _ in range(200)], [5 * round_ + number // 40 + 1 for number in range(200)])
            expect(cluster.run("kill", "master").returncode, 0)
            cluster.wait_whole()
            expect(link.call("MGET", *[f"count:{number}" for number in range(40)]), [b"%d" % (5 * round_ + 5)] * 40)
    finally:
        cluster.close()


@check
def a_carrier_that_cannot_be_had_is_named_with_the_way_to_get_it():
    def started(*flags):
        ran = subprocess.run([BINARY, "witness", *flags], text=True, check=False, capture_output=True,
                             timeout=PATIENCE, stdin=subprocess.DEVNULL)
        return ran.returncode, ran.stderr

    code, said = started("--carrier", "xdp")
    assert code == 1 and "--carrier xdp needs --interface" in said, said
    # No file system for pins, or no right, or no kernel: one of them is named, whatever the machine.
    code, said = started("--carrier", "xdp", "--interface", "lo", "--bpffs", "/proc")
    assert code == 1 and "no witness in carrier xdp: " in said, said
    ways = ["mount -t bpf bpf /proc", "start it as root", "run a newer kernel", "take --carrier user"]
    assert any(way in said for way in ways), said
    port = free_ports(1)
    command = [BINARY, "witness", "--carrier", "xdp", "--interface", "lo", "--bpffs", "/proc", "--fallback",
               "--listen", f"127.0.0.1:{port}"]
    witness = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = witness.stdout.readline()
    witness.terminate()
    _, said = witness.communicate(timeout=PATIENCE)
    assert f"witness at 127.0.0.1:{port}, carrier user, durability: memory" in first, first + said
    assert said.count("taking the next best") == 2, said
    expect(witness.returncode, 0, said)
