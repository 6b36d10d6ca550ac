"""A real etcd of one member."""

import os
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from harness.pool import wait_for
from harness.servers import free_port


class Etcd:
    """One member, which keeps its data when it is killed."""

    def __init__(self):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        fetched = cache / "manxdb" / "etcd" / "etcd"
        self.program = str(fetched) if fetched.exists() else shutil.which("etcd")
        if self.program is None:
            raise AssertionError("there is no etcd: scripts/setup.sh test fetches it")
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-etcd-")
        self.port, self.peer = free_port(), free_port()
        self.process = None
        self.start()

    @property
    def address(self):
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    def start(self):
        """It, again after it was killed."""
        own, peer = f"http://{self.address}", f"http://127.0.0.1:{self.peer}"
        command = [self.program, "--data-dir", self.directory.name, "--name", "one",
                   "--listen-client-urls", own, "--advertise-client-urls", own,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", f"one={peer}", "--logger", "zap", "--log-level", "error"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for("etcd is healthy", self.is_healthy)

    def is_healthy(self):
        """Whether it says so."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=5) as said:
                return b"true" in said.read()
        except OSError:
            return False

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()
