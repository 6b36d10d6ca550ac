"""Roles of the compaction service as processes."""

import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from harness.servers import free_port

BINARY = os.environ.get("MANXDB_TEST_BINARY", "")
# Longer than anything here takes; only a hanging test meets it.
PATIENCE = 120


def metrics(port):
    """Numbers by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in
            (line.rpartition(" ") for line in lines if line and not line.startswith("#"))}


def wait_for(what, holds):
    """Until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"this does not come: {what}")
        time.sleep(0.05)


class Role:
    """`manxdb compactor control` or `worker`."""

    def __init__(self, directory, name, *arguments):
        self.log_path = Path(directory) / f"{name}.log"
        self.port = free_port()
        command = [BINARY, "compactor", *arguments, "--metrics", f"127.0.0.1:{self.port}"]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(f"{name} is up", self.is_up)

    def is_up(self):
        """Whether it answers."""
        if self.process.poll() is not None:
            raise AssertionError(self.log_path.read_text())
        try:
            return bool(metrics(self.port))
        except OSError:
            return False

    def numbers(self):
        """Its metrics."""
        return metrics(self.port)

    def end(self, how=signal.SIGKILL):
        """Ends it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
        return self.process.wait(PATIENCE)
