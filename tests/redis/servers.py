"""Servers of this tree that tests start and kill, and what is asked of their data."""

import os
import signal
import socket
import subprocess
import time

from resp import Link


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    """Until it answers."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            link = Link(port)
            if link.call("PING") == "PONG":
                return link
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError("the server does not answer")


class Ours:
    """A server of this tree."""

    def __init__(self, data, durability="sync", flags=()):
        self.data, self.durability, self.flags, self.port, self.admin = data, durability, flags, free_port(), free_port()

    def start(self):
        binary = os.environ.get("MANXDB_TEST_BINARY", "target/debug/manxdb")
        command = [binary, "serve", "--data", self.data, "--mysql-listen", f"127.0.0.1:{free_port()}", "--admin-listen",
                   f"127.0.0.1:{self.admin}", "--redis-listen", f"127.0.0.1:{self.port}", "--insecure",
                   "--durability", self.durability, "--max-connections", "6000", "--log", "warn", *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return wait_for(self.port, self.process)

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait()


def check(data):
    """What `manxdb redis check` says against the rows of a data directory."""
    binary = os.environ.get("MANXDB_TEST_BINARY", "target/debug/manxdb")
    done = subprocess.run([binary, "redis", "check", "--data", data], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"manxdb redis check: {done.stdout[-600:]}{done.stderr[-300:]}"
