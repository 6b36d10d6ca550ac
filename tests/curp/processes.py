"""Clusters for the tests of this directory, and what they have in common."""

import atexit
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

from harness.servers import take_port

BINARY = os.environ["MANXDB_TEST_BINARY"]
# Longer than anything here takes; only a hanging test meets it.
PATIENCE = 60
# One way between processes of the cluster in which round trips are counted.
AWAY = 0.020


def free_ports(count):
    """The first of a row of ports for this process's servers."""
    for base in range(23000 + os.getpid() % 400 * 20, 32000, 20):
        if all(take_port(base + offset) for offset in range(count)):
            return base
    raise AssertionError("there is no row of free ports")


class Processes:
    """The processes of a cluster for one fault: 3 servers, 2 witnesses, 1 coordinator, and a proxy of
    Redis clients unless it replicates SQL's rows; ports for one more witness."""

    NODES = 8

    def __init__(self, clients, *more, suspect_ms=600):
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-curp-")
        self.data = pathlib.Path(self.directory.name) / "data"
        self.first = free_ports(self.NODES + 4)
        base = self.first + 4
        self.command = [BINARY, "cluster", "up", "curp", "--f", "1", "--data", str(self.data), "--base-port",
                        str(base), clients, str(self.first), "--suspect-ms", str(suspect_ms), *more]
        atexit.register(self.close)
        self.start()

    def start(self):
        """Starts it: the first time with nothing, later with what its directories have."""
        self.up = subprocess.Popen(self.command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = []
        for line in self.up.stdout:
            lines.append(line)
            if line.startswith("cluster is up"):
                break
        else:
            raise AssertionError("the cluster did not start: " + "".join(lines))
        # What it says later is read by nobody; a full pipe must not stop it.
        threading.Thread(target=self.up.stdout.read, daemon=True).start()

    def run(self, *arguments):
        """A command on it."""
        command = [BINARY, "cluster", arguments[0], "--cluster", str(self.data), *arguments[1:]]
        return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, check=False, timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def status(self):
        """What every node says of itself."""
        return json.loads(self.run("status", "--json").stdout)

    def notes(self, number):
        """What a node says of itself, by name."""
        return self.status()["nodes"][number]["answer"].get("notes", {})

    def master(self):
        """The number of the master and its process; None while there is none."""
        for node in self.status()["nodes"]:
            if node["answer"].get("notes", {}).get("state") == "is master":
                return node["number"], node["answer"]["process"]
        return None

    def wait_until(self, lacking):
        """Until a status lacks nothing that `lacking` finds in it."""
        deadline = time.monotonic() + PATIENCE
        while lacks := lacking(self.status()):
            if time.monotonic() > deadline:
                raise AssertionError(f"the cluster still lacks: {lacks}")
            time.sleep(0.05)

    def wait_whole(self):
        """Until it lacks nothing."""
        self.wait_until(lambda status: status["lacking"])

    def of_master(self, name, status=None):
        """What the master says of itself, by name, in this status or now; None while there is none."""
        for node in (status or self.status())["nodes"]:
            notes = node["answer"].get("notes", {})
            if notes.get("state") == "is master":
                return notes.get(name)
        return None

    def wait_followed(self):
        """Until a spare has the master's log but for the commands of the last moment."""
        def lacks(status):
            followers = (self.of_master("followers", status) or "").split()
            lacks = [one.partition(":")[2] for one in followers]
            return "a spare that follows" if not any(one.isdigit() and int(one) < 256 for one in lacks) else ""

        self.wait_until(lacks)

    def copied(self):
        """Bytes of copies that the master has sent since it became that."""
        return int(self.of_master("copied bytes"))

    def wait_on_disk(self):
        """Until the disk of every server has what the server has executed."""
        def behind(status):
            notes = [node["answer"].get("notes", {}) for node in status["nodes"]]
            counts = [int(one["not on disk"]) for one in notes if "not on disk" in one]
            return [f"{count} commands on a disk" for count in counts if count] if counts else "servers"

        self.wait_until(behind)

    def kill_all(self):
        """kill -9 of all processes at once, as near as can be."""
        for number in [node["answer"]["process"] for node in self.status()["nodes"]] + [self.up.pid]:
            os.kill(number, signal.SIGKILL)
        self.up.wait(timeout=PATIENCE)

    def stop_in_order(self):
        """As Ctrl-C does."""
        self.up.send_signal(signal.SIGTERM)
        self.up.wait(timeout=PATIENCE)

    def data_of(self, number):
        """Where a node keeps what it keeps."""
        return self.data / f"node-{number}"

    def close(self):
        """Ends all processes."""
        if self.up.poll() is None:
            self.up.send_signal(signal.SIGTERM)
            self.up.wait(timeout=PATIENCE)
        self.directory.cleanup()


class SqlCluster(Processes):
    """One that replicates SQL's rows."""

    def __init__(self, *more, **options):
        super().__init__("--mysql-port", "--sql", *more, **options)

    def mysql_port(self, server):
        """Where MySQL clients reach a server."""
        return self.first + server - 1

    def mysql_ports(self):
        """Where they reach all of them."""
        return [self.mysql_port(server) for server in (1, 2, 3)]


def seconds(what):
    """How long something takes."""
    start = time.monotonic()
    what()
    return time.monotonic() - start
