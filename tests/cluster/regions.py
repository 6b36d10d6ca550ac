"""A cluster over regions of processes (`manxdb cluster up dast`), and the admin listeners of its nodes."""

import atexit
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.request

from harness.servers import take_port

BINARY = os.environ["MANXDB_TEST_BINARY"]
# Longer than anything here takes; only a hanging test meets it.
PATIENCE = 60


def free_ports(servers):
    """The first of a row of ports for this process's servers: those of the nodes, and behind them of their admin
    listeners."""
    step = 2 * servers
    for base in range(21000 + os.getpid() % 200 * step, 32000 - step, step):
        if all(take_port(base + offset) for offset in range(step)):
            return base
    raise AssertionError("there is no row of free ports")


class RegionCluster:
    """Regions of some shards each, with three replicas of each shard and then three managers of each region: of
    two regions with one shard each, replicas 0 to 5 and managers 6 to 11."""

    def __init__(self, *flags, shards=1, regions=2):
        self.flags = ["--shards", str(shards), "--regions", str(regions), *flags]
        self.servers = regions * 3 * (shards + 1)
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-regions-")
        self.data = pathlib.Path(self.directory.name) / "data"
        self.base = free_ports(self.servers)
        self.stopped = set()
        self.up = self.start(self.data, self.base)
        atexit.register(self.close)
        self.said = ""
        for line in self.up.stdout:
            self.said += line
            if line.startswith("stop it:"):
                break
        else:
            raise AssertionError("the cluster did not start: " + self.said)
        self.nodes = self.status()

    def start(self, data, base):
        """`manxdb cluster up`."""
        command = [BINARY, "cluster", "up", "dast", "--lan-ms", "2", "--wan-ms", "30",
                   "--data", str(data), "--base-port", str(base), "--tpcc-scale", "tiny", *self.flags]
        return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def status(self):
        """What every node says of itself."""
        done = self.run("cluster", "status", "--json")
        return json.loads(done.stdout)["nodes"]

    def run(self, *arguments):
        """Another command on it."""
        return subprocess.run([BINARY, *arguments, "--cluster", str(self.data)], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)

    def load(self, seconds):
        """Lists appended to, a third of the calls across regions; the report."""
        report = self.data / "report.json"
        done = self.run("bench", "append", "--clients", "8", "--seconds", str(seconds), "--crt-percent", "30",
                        "--json", str(report))
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        return json.loads(report.read_text())

    def signal(self, number, which):
        """Of the process of a node, as it was at the start."""
        os.kill(self.nodes[number]["answer"]["process"], which)
        if which == signal.SIGSTOP:
            self.stopped.add(number)
        if which == signal.SIGCONT:
            self.stopped.discard(number)

    def start_node(self, number):
        """`manxdb cluster node`, for a node whose process has ended; its process."""
        command = [BINARY, "cluster", "node", "--cluster", str(self.data), "--node", str(number)]
        with open(self.data / f"node-{number}" / "log", "a", encoding="utf-8") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def close(self):
        """Ends what is left of it."""
        for number in list(self.stopped):
            self.signal(number, signal.SIGCONT)
        if self.up.poll() is None:
            self.up.terminate()
            self.up.wait(PATIENCE)
        self.directory.cleanup()


def fetch(address, accept="text/html"):
    """The text of a page."""
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.read().decode()


def samples(admin):
    """What `/metrics` of a node says: values by name, and labels without the node's region."""
    found = {}
    for line in fetch(f"{admin}/metrics").splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[re.sub(r',?region="\d+"}', "}", name).replace("{}", "")] = float(value)
    return found


def shown_and_measured(page, number, metrics):
    """Pairs of what a page shows of a node and what the node's metrics say, by name."""
    node = page["nodes"][number]
    pairs = {"records": (node["records"], metrics.get("manxdb_dast_records"))}
    for name, shown in (node["classes"] or {}).items():
        label = f'class="{name}"'
        pairs |= {
            f"{name} answered": (shown["answered"], metrics[f"manxdb_dast_transaction_seconds_count{{{label}}}"]),
            f"{name} sum": (shown["sum"], metrics[f"manxdb_dast_transaction_seconds_sum{{{label}}}"]),
            f"{name} open": (shown["open"], metrics[f"manxdb_dast_open_transactions{{{label}}}"]),
            f"{name} count": (shown["minute"]["count"], metrics[f"manxdb_dast_last_minute_transactions{{{label}}}"]),
        }
        for key, quantile in (("p50", "0.5"), ("p99", "0.99"), ("longest", "1")):
            sample = f'manxdb_dast_last_minute_seconds{{{label},quantile="{quantile}"}}'
            pairs[f"{name} {key}"] = (shown["minute"][key], metrics.get(sample))
        for reason, waited in shown["waits"].items():
            sample = f'manxdb_dast_wait_seconds_total{{{label},reason="{reason}"}}'
            pairs[f"{name} {reason}"] = (waited, metrics.get(sample))
    return pairs


def wait_until_same(nodes, own):
    """The page of a node, once it shows of every node what that one's metrics say: nothing may be asked meanwhile."""
    admins = [node["admin"] for node in nodes]
    deadline = time.monotonic() + PATIENCE
    while True:
        page = json.loads(fetch(f"{admins[own]}/geo", "application/json"))
        differing = {
            (number, name): pair
            for number, admin in enumerate(admins)
            for name, pair in shown_and_measured(page, number, samples(admin)).items()
            if pair[0] != pair[1] and name != "records"
        }
        if not differing:
            return page
        if time.monotonic() > deadline:
            raise AssertionError(f"the page is not what metrics say: {differing}")
        time.sleep(0.2)
