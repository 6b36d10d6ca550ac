"""A cluster of 18 processes under load while some of them die.

Lists are read and appended to by clients of all shards (`manxdb bench append --check`), so that
what they saw proves the order: every call ends, no acknowledged append is lost, the history is
serializable, replicas are equal in the end. Meanwhile one node after another is killed and
started again. Increments are counted before and after, and a run is drawn beside the simulator's.
Latencies are printed, not judged.

    run.py [word of a check's name …]
"""

import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness.checks import check, expect, main
from harness.signals import stand_still
from regions import BINARY, PATIENCE, RegionCluster, fetch, free_ports, samples, wait_until_same

import fenced  # noqa: F401  its checks run first


class Cluster(RegionCluster):
    """The processes, started once for all checks."""

    def __init__(self):
        self.restarted = []
        super().__init__(shards=2)

    def wait(self, what, holds):
        """Until a node's answer is as wanted."""
        deadline = time.monotonic() + PATIENCE
        while not any(holds(node["answer"]) for node in self.status() if node["number"] == what):
            if time.monotonic() > deadline:
                raise AssertionError(f"node {what} does not come back: {self.status()[what]}")
            time.sleep(0.1)

    def kill_and_restart(self, number):
        """kill -9, and after a while `manxdb cluster node`."""
        os.kill(self.status()[number]["answer"]["process"], signal.SIGKILL)
        time.sleep(2)
        self.restarted.append(self.start_node(number))
        self.wait(number, lambda answer: answer.get("life", 0) > 1
                  and answer["notes"]["state"] != "is out")

    def load_meanwhile(self, seconds, meanwhile):
        """The lists under load, and what happens meanwhile."""
        report = self.data / "report.json"
        report.unlink(missing_ok=True)
        command = [BINARY, "bench", "append", "--check", "--clients", "8", "--seconds", str(seconds),
                   "--crt-percent", "20", "--patience", "15",
                   "--deferred-percent", "20", "--cluster", str(self.data), "--json", str(report)]
        bench = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            time.sleep(3)
            meanwhile()
            out, _ = bench.communicate(timeout=2 * PATIENCE)
        finally:
            bench.kill()
        print(out, flush=True)
        expect(bench.returncode, 0, out)
        result = json.loads(report.read_text())
        expect((result["open"], result["findings"]), (0, []))
        for name in ("local", "cross-region"):
            if not result["classes"][name]["calls"]:
                raise AssertionError(f"no {name} call was answered")

    def close(self):
        """Whatever is left of it."""
        for process in self.restarted:
            if process.poll() is None:
                process.kill()
            process.wait()
        super().close()


CLUSTER = None


def cluster():
    """The one cluster of this run."""
    global CLUSTER
    if CLUSTER is None:
        CLUSTER = Cluster()
    return CLUSTER


@check
def a_port_or_a_directory_in_use_is_said():
    up = cluster()
    for data, base, words in [(up.data, free_ports(up.servers), "in use by another process"),
                              (up.data.parent / "other", up.base, "the port is in use")]:
        second = up.start(data, base)
        out, _ = second.communicate(timeout=PATIENCE)
        expect(second.returncode, 1, out)
        if words not in out:
            raise AssertionError(out)
    unknown = subprocess.run([BINARY, "bench", "append", "--cluster", "/nowhere/cluster.toml"],
                             text=True, capture_output=True, check=False)
    expect(unknown.returncode, 1)
    if "there is no cluster file /nowhere/cluster.toml" not in unknown.stderr:
        raise AssertionError(unknown.stderr)


def another_cluster_file():
    """The directory of a cluster like the one that runs, at other ports, of which nothing runs."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=cluster().directory.name))
    text, base = (cluster().data / "cluster.toml").read_text(), free_ports(cluster().servers)
    text = re.sub(r"127\.0\.0\.1:(\d+)", lambda port: f"127.0.0.1:{int(port.group(1)) - cluster().base + base}", text)
    (directory / "cluster.toml").write_text(re.sub(r'^id = ".*"$', 'id = "c0ffee"', text, flags=re.MULTILINE))
    return directory


@check
def a_node_shows_its_cluster_over_https_with_a_certificate_of_its_own():
    alone = another_cluster_file()
    command = [BINARY, "cluster", "node", "--node", "0", "--cluster", str(alone), "--admin-listen", "127.0.0.1:0", "--admin-tls"]
    with open(alone / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r'admin="(https://[^"]+)"', (alone / "log").read_text())):
            expect((process.poll(), time.monotonic() < deadline), (None, True), (alone / "log").read_text())
            time.sleep(0.1)
        trusted = ssl.create_default_context(cafile=alone / "node-0" / "server-cert.pem")
        with urllib.request.urlopen(f"{found.group(1)}/geo", timeout=PATIENCE, context=trusted) as answer:
            page = answer.read().decode()
        expect("unavailable: region 1 has lost its majority: 0 of its 3 managers answer" in page, True, page)
        expect(f'<a href="{found.group(1)}/">0</a> <small>(this one)</small>' in page, True, page)
    finally:
        process.terminate()
        expect(process.wait(PATIENCE), 0)


@check
def an_admin_port_in_use_or_an_address_without_port_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([BINARY, "cluster", "up", "dast", "--data", str(cluster().data.parent / "third"), "--base-port",
                               str(free_ports(cluster().servers)), "--admin-port", str(port), "--tpcc-scale", "tiny"],
                              text=True, capture_output=True, check=False, timeout=PATIENCE)
        expect((done.returncode, f"127.0.0.1:{port} is not free for the admin listener of a node" in done.stderr), (1, True),
               done.stderr)
        node = ["cluster", "node", "--node", "0"]
        alone = another_cluster_file()
        said = subprocess.run([BINARY, *node, "--cluster", str(alone), "--admin-listen", f"127.0.0.1:{port}"],
                              text=True, capture_output=True, check=False, timeout=PATIENCE)
        words = f"cannot listen on 127.0.0.1:{port} for the admin page: the port is in use (choose another with --admin-listen)"
        expect((said.returncode, words in said.stderr), (1, True), said.stderr)
    for flags, words in [(["--admin-listen", "127.0.0.1"], "that is no IP address with a port, as 127.0.0.1:8500 is"),
                         (["--tls-cert", "x"], "--tls-key")]:
        bad = subprocess.run([BINARY, *node, *flags], text=True, capture_output=True, check=False, timeout=PATIENCE)
        expect((bad.returncode, words in bad.stderr), (2, True), bad.stderr)


@check
def a_replica_is_killed_and_comes_back():
    cluster().load_meanwhile(6, lambda: cluster().kill_and_restart(1))


@check
def a_coordinator_is_killed_and_comes_back():
    # Clients of a shard take turns with its replicas, so each of them coordinates.
    cluster().load_meanwhile(6, lambda: cluster().kill_and_restart(6))


@check
def a_leading_manager_is_killed_and_comes_back():
    def kill_leader():
        leader = next(node["number"] for node in cluster().status()
                      if node["region"] == 0 and node["answer"]["notes"]["state"] == "leads")
        cluster().kill_and_restart(leader)
    cluster().load_meanwhile(6, kill_leader)


@check
def every_increment_of_tpc_a_is_in_all_three_tables():
    # Twice: the second run counts from where the first one ended.
    for seed in ("1", "2"):
        bench = cluster().run("bench", "tpca", "--check", "--seconds", "3", "--seed", seed)
        expect(bench.returncode, 0, bench.stdout)
        if "each table has an increment for each call" not in bench.stdout:
            raise AssertionError(bench.stdout)


@check
def every_node_shows_the_cluster_as_the_metrics_of_all_nodes_say():
    # Three nodes are in their second lives by now.
    up = cluster()
    nodes = up.status()
    listed = up.run("cluster", "status").stdout
    expect([node["admin"] for node in nodes if node["admin"] not in listed], [], listed)
    before = answered(nodes)
    bench = up.run("bench", "append", "--clients", "8", "--seconds", "2", "--crt-percent", "30", "--warm-up", "0")
    expect(bench.returncode, 0, bench.stdout)
    page = wait_until_same(nodes, nodes[-1]["number"])
    expect((page["lacking"], page["own"]), ([], nodes[-1]["number"]))
    for name in ("local", "cross-region"):
        of = [region["classes"][name] for region in page["regions"]]
        expect(all(each["minute"]["count"] > 0 and each["minute"]["p50"] <= each["minute"]["p99"] for each in of), True, f"{of}")
        # Two milliseconds there and back within a region, thirty between regions.
        floor = 0.002 if name == "local" else 0.060
        expect(min(each["minute"]["p50"] for each in of) >= floor, True, f"{of}")
        expect(sum(each["answered"] for each in of) > before[name], True)
    waited = page["regions"][0]["classes"]["local"]["waits"]
    expect(waited.get("ordering gate", 0) > 0, True, f"{waited}")
    expect(all(region["live"] == region["replicas"] == 6 for region in page["regions"]), True, f"{page['regions']}")
    expect([fetch(f"{node['admin']}/readyz") for node in nodes], ["ready\n"] * up.servers)
    leaders = {region["leader"] for region in page["regions"]}
    expect({node["number"] for node in nodes if samples(node["admin"]).get("manxdb_dast_leads") == 1.0}, leaders)


def answered(nodes):
    """Calls answered so far by class, as metrics say."""
    counts = {"local": 0, "cross-region": 0}
    for node in nodes:
        metrics = samples(node["admin"])
        for name in counts:
            counts[name] += metrics.get(f'manxdb_dast_transaction_seconds_count{{class="{name}"}}', 0)
    return counts


@check
def a_run_is_drawn_beside_the_simulator_s():
    out = cluster().data / "comparison"
    flags = ["--clients", "8", "--seconds", "3", "--check", "--against-sim", str(out)]
    bench = cluster().run("bench", "payment", *flags)
    expect(bench.returncode, 0, bench.stdout)
    data = json.loads((out / "data.json").read_text())
    expect(data["findings"], {"processes": [], "simulator": []})
    for name in ("local", "cross-region"):
        for who in ("processes", "simulator"):
            if not data["classes"][name][who]["calls"]:
                raise AssertionError(f"no {name} call of the {who}: {data}")
    expect((out / "comparison.png").read_bytes()[:4], b"\x89PNG")
    expect((out / "comparison.svg").read_text()[:4], "<svg")
    uneven = cluster().run("bench", "payment", "--clients", "6", "--against-sim", str(out))
    expect(uneven.returncode, 1, uneven.stdout)
    if "--clients 6 cannot be spread evenly over 4 shards" not in uneven.stdout:
        raise AssertionError(uneven.stdout)


@check
def a_region_without_a_majority_is_named_and_the_status_fails():
    nodes = cluster().status()
    fine = cluster().run("cluster", "status")
    expect(fine.returncode, 0, fine.stdout)
    managers = [node for node in nodes if node["role"] == "manager of region 1"]
    # They stand still, and go on later: what they know is in memory.
    stopped = [node["answer"]["process"] for node in managers[:2]]
    for process in stopped:
        stand_still(process)
    try:
        status = cluster().run("cluster", "status")
    finally:
        for process in stopped:
            os.kill(process, signal.SIGCONT)
    expect(status.returncode, 1, status.stdout)
    lines = [line for line in status.stdout.splitlines() if line.startswith(("unavailable", "degraded"))]
    # A leader that still runs leads until it misses the others; one that stands still is not heard.
    if managers[2]["answer"]["notes"]["state"] != "leads":
        if not lines[0].startswith("unavailable: region 1 has lost its majority: 1 of its 3 managers answer"):
            raise AssertionError(status.stdout)
    expect(sum("does not answer" in line for line in lines), 2, status.stdout)


@check
def a_cluster_stops_when_told():
    down = cluster().run("cluster", "down")
    expect(down.returncode, 0, down.stdout)
    expect(cluster().up.wait(PATIENCE), 0)
    expect(cluster().run("cluster", "status").returncode, 1)
    bench = cluster().run("bench", "append")
    expect((bench.returncode, "it is down" in bench.stdout), (1, True), bench.stdout)
    for process in cluster().restarted:
        process.wait(PATIENCE)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
