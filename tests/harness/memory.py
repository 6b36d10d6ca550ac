"""Memory servers as processes, and database servers on their memory."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from harness.pool import BINARY, PATIENCE, metrics, wait_for
from harness.servers import Manxdb, free_port

# Long enough for a machine on which others work too.
LEASE_SECONDS = 2.0


def addresses(*ports):
    """Memory servers that listen on this machine."""
    return "tcp://" + ",".join(f"127.0.0.1:{port}" for port in ports)


def readiness(port):
    """Status and line of /readyz."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


class Memory:
    """One `manxdb memory`; with a port it listens there, and has no directory."""

    def __init__(self, directory, server, servers, flags=(), port=None):
        self.admin = free_port()
        self.log_path = Path(directory) / f"memory-{server}.log"
        at = {"--listen": f"127.0.0.1:{port}"} if port else {"--directory": f"{directory}/rows"}
        given = {**at, "--server": server, "--servers": servers,
                 "--size-mb": 512, "--lease-ms": int(LEASE_SECONDS * 1000),
                 "--admin-listen": f"127.0.0.1:{self.admin}", **dict(flags)}
        self.command = [BINARY, "memory", *(str(word) for flag in given.items() for word in flag)]
        self.process = None

    def start(self):
        """Starts it and waits until it answers."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(f"{' '.join(self.command)} is up", self.is_up)
        return self

    def is_up(self):
        """Whether it answers."""
        if self.process.poll() is not None:
            raise AssertionError(self.log_path.read_text())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/healthz", timeout=PATIENCE) as answer:
                return answer.status == 200  # whatever it lacks
        except OSError:
            return False

    def numbers(self):
        """Its metrics."""
        return metrics(self.admin)

    def ready(self):
        """Status and line of its /readyz."""
        return readiness(self.admin)

    def version(self):
        """What it says it is."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/version", timeout=PATIENCE) as answer:
            return json.load(answer)

    def end(self, how=signal.SIGKILL):
        """Ends it; its exit code."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE) if self.process else None

    def refused(self):
        """What it says when it does not start."""
        done = subprocess.run(self.command, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False)
        if done.returncode != 1:
            raise AssertionError(f"{done.returncode}: {done.stdout}{done.stderr}")
        return done.stderr


class OnMemory(Manxdb):
    """`manxdb serve` on the memory of others."""

    name = "manxdb-on-memory"

    def __init__(self, directory, clients=4, at=None):
        super().__init__(BINARY, ["--commit-path", "rsi", "--memory", at or f"{directory}/rows",
                                  "--memory-clients", str(clients)])

    def refused(self):
        """What it says when it does not start."""
        done = subprocess.run(self.command(), text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              env=self.environment(), timeout=PATIENCE, check=False)
        if done.returncode != 1:
            raise AssertionError(f"{done.returncode}: {done.stdout}{done.stderr}")
        return done.stderr

    def numbers(self):
        """Its metrics."""
        return metrics(self.admin_port)

    def ready(self):
        """Status and line of its /readyz."""
        return readiness(self.admin_port)


class Rack:
    """Memory servers, and database servers on them; all end with this object."""

    def __init__(self, servers=2, flags=(), listens=False):
        self.directory = tempfile.mkdtemp(prefix="manxdb-test-memory-")
        ports = [free_port() if listens else None for _ in range(servers)]
        self.memory = [Memory(self.directory, number, servers, flags, port)
                       for number, port in enumerate(ports)]
        # None: the directory.
        self.at = addresses(*ports) if listens else None
        self.databases = []

    def __enter__(self):
        for memory in self.memory:
            memory.start()
        return self

    def __exit__(self, *_):
        for server in self.databases:
            if server.alive():
                os.kill(server.process.pid, signal.SIGCONT)
            server.close()
        for memory in self.memory:
            memory.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def database(self):
        """One more database server."""
        server = OnMemory(self.directory, at=self.at)
        self.databases.append(server)
        return server.start()
