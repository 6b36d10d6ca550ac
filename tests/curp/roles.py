"""Processes that start alone, a witness that is added, and bytes that nobody meant to send."""

import os
import socket
import subprocess
import threading
import time
import urllib.request

from harness.checks import check, expect
from processes import BINARY, PATIENCE, free_ports
from redis_cluster import counted, near
from resp import Link


@check
def bytes_that_make_no_sense_are_counted_and_dropped():
    cluster = near()
    cluster.wait_whole()
    # Places in which add-witness may start one answer nothing.
    nodes = [node for node in cluster.status()["nodes"] if "counters" in node["answer"]]
    refused = {node["number"]: node["answer"]["counters"]["datagrams refused"] for node in nodes}
    attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    record = bytearray(b"CRPW\x01\x01\x00\x01" + bytes(80))
    told = [node for node in nodes if node["role"] in ("witness", "server", "proxy")]
    expect({node["role"] for node in told}, {"witness", "server", "proxy"})
    for node in told:
        host, port = node["address"].split(":")
        for length in [0, 1, 47, 51, 52, 200, 1472, 1473, 9000]:
            attacker.sendto(os.urandom(length), (host, int(port)))
        for _ in range(200):  # a flood, right but for its checksum
            attacker.sendto(bytes(record), (host, int(port)))
    link = cluster.proxy()
    for number in range(20):
        expect(link.call("SET", f"hostile:{number}", number), "OK")
    for node in cluster.status()["nodes"]:
        if node["number"] in [one["number"] for one in told]:
            grown = node["answer"]["counters"]["datagrams refused"] - refused[node["number"]]
            assert grown >= 9, f"node {node['number']} counted {grown}"
    cluster.wait_whole()


@check
def each_process_starts_alone_and_says_what_it_is_for():
    for role in ["coordinator", "replica", "master", "witness", "proxy"]:
        ran = subprocess.run([BINARY, role, "--help"], text=True, check=True, capture_output=True,
                             timeout=PATIENCE)
        assert "--cluster" in ran.stdout and "Durability: " in ran.stdout, ran.stdout
    cluster = near()
    ran = subprocess.run([BINARY, "witness", "--cluster", str(cluster.data), "--node", "1"], text=True,
                         check=False, capture_output=True, timeout=PATIENCE)
    assert ran.returncode == 1 and "node 1 is a server" in ran.stderr, ran.stderr
    port = free_ports(2)
    proxy = subprocess.Popen([BINARY, "proxy", "--cluster", str(cluster.data), "--listen",
                              f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{port + 1}"],
                             stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                link = Link(port)
                break
            except OSError:
                assert time.monotonic() < deadline and proxy.poll() is None, "the proxy does not serve"
                time.sleep(0.05)
        took = counted(link, lambda: expect(link.call("SET", "alone", 1), "OK"))
        assert sum(took.values()) == 1 and "unknown" not in took, took
        expect(cluster.proxy().call("GET", "alone"), b"1")
        with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/metrics", timeout=PATIENCE) as page:
            text = page.read().decode()
        way, = took
        assert f'manxdb_curp_commands_total{{way="{way}"}} 1' in text, text
    finally:
        proxy.terminate()
        proxy.wait(timeout=PATIENCE)


@check
def a_witness_is_added_and_replaces_another_while_clients_write():
    cluster = near()
    cluster.wait_whole()
    link = cluster.proxy()
    link.call("SET", "added", "0")
    old, = cluster.notes(0)["witnesses"].split()
    stop, done = threading.Event(), []

    def write():
        other = cluster.proxy()
        while not stop.is_set():
            done.append(other.call("INCR", "added"))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    ran = cluster.run("add-witness", "--replaces", old)
    expect(ran.returncode, 0, ran.stdout)
    assert "is a witness: a spare" in ran.stdout and f"node {old} has ended" in ran.stdout, ran.stdout
    assert old not in cluster.notes(0)["witnesses"].split(), ran.stdout
    before, deadline = len(done), time.monotonic() + PATIENCE
    while len(done) < before + 5:
        assert time.monotonic() < deadline, "nobody writes any more"
        time.sleep(0.01)
    stop.set()
    writer.join(timeout=PATIENCE)
    expect(int(link.call("GET", "added")), len(done), "each INCR once")
    # What was ended is started again by `cluster up`: now every place is taken.
    cluster.wait_whole()
    ran = cluster.run("add-witness")
    assert ran.returncode == 1 and "--room" in ran.stdout, ran.stdout
    ran = cluster.run("add-witness", "--replaces", "1")
    assert ran.returncode == 1 and "node 1 is no witness" in ran.stdout, ran.stdout
