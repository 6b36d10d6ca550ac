"""A server whose compactions are done by a pool of other processes, some of which die.

Rows are written, replaced and deleted by one client that keeps a copy of what was acknowledged;
the write buffer is small, so that compactions are many. Whatever happens to the pool, the rows
must be those of the copy, and the metrics must say where compactions were done.

    run.py [word of a check's name …]
"""

import atexit
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pymysql

from harness.checks import check, expect, main
from harness.servers import PASSWORD, Manxdb, free_port

BINARY = os.environ["MANXDB_TEST_BINARY"]
# Longer than anything here takes; only a hanging test meets it.
PATIENCE = 120
ROWS = 12_000
PAD = 400


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


class House:
    """A server, its pool, and a client that knows what the rows should be."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-compaction-")
        self.path = Path(self.directory.name)
        self.token = self.path / "token"
        self.token.write_text("a secret\n")
        self.control_port = free_port()
        self.control = self.start_control()
        self.workers = []
        self.server = None
        self.random = random.Random(4)
        self.rows = {}
        self.number = 0
        atexit.register(self.close)

    def secret(self):
        """How to be let in."""
        return ["--token-file", str(self.token)]

    def start_control(self):
        """The control plane; the same one again after it ended."""
        return Role(self.path, "control", "control", "--listen", f"127.0.0.1:{self.control_port}",
                    "--store", str(self.path / "control"), *self.secret())

    def start_worker(self):
        """One more worker."""
        worker = Role(self.path, f"worker-{len(self.workers)}", "worker",
                      "--control", f"127.0.0.1:{self.control_port}",
                      "--volume", f"fast={self.path}", *self.secret())
        self.workers.append(worker)
        return worker

    def server_flags(self, token):
        """Flags of a server that hands compactions out."""
        return ["--compaction", "remote", "--control", f"127.0.0.1:{self.control_port}",
                "--compaction-volume", f"fast={self.path}", "--compaction-min-mb", "0",
                "--compaction-token-file", str(token), "--write-buffer-mb", "1",
                "--durability", "async"]

    def start_server(self):
        """The server, with an empty table when it is new."""
        if self.server is None:
            self.server = Manxdb(BINARY, self.server_flags(self.token))
            self.server.data = self.path / "data"
        self.server.start()

    def query(self, sql, *arguments):
        """All rows of a statement."""
        link = pymysql.connect(host="127.0.0.1", port=self.server.port, user="root", password=PASSWORD,
                               autocommit=True, read_timeout=PATIENCE)
        with link, link.cursor() as cursor:
            cursor.execute(sql, *arguments)
            return cursor.fetchall()

    def create(self):
        """The table."""
        self.query("CREATE DATABASE shop")
        self.query("CREATE TABLE shop.item (id INT PRIMARY KEY, n BIGINT NOT NULL, pad VARBINARY(500))")

    def write(self, statements=12):
        """Replaces and deletes rows: about as much as a write buffer holds."""
        link = pymysql.connect(host="127.0.0.1", port=self.server.port, user="root", password=PASSWORD,
                               database="shop", autocommit=True, read_timeout=PATIENCE)
        with link, link.cursor() as cursor:
            for _ in range(statements):
                new = {}
                for _ in range(200):
                    self.number += 1
                    new[self.random.randrange(ROWS)] = (self.number, self.random.randbytes(PAD))
                cursor.executemany("REPLACE INTO item (id, n, pad) VALUES (%s, %s, %s)",
                                   [(key, *row) for key, row in new.items()])
                self.rows.update(new)
                low = self.random.randrange(ROWS)
                cursor.execute("DELETE FROM item WHERE id BETWEEN %s AND %s", (low, low + 60))
                for key in range(low, low + 61):
                    self.rows.pop(key, None)

    def write_until(self, what, holds):
        """Writes until it holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"this does not come: {what}: {self.shown()}")
            self.write()

    def compare(self):
        """The rows are those of the copy."""
        found = {key: (n, pad) for key, n, pad in self.query("SELECT id, n, pad FROM shop.item")}
        if found != self.rows:
            odd = [key for key in found.keys() | self.rows.keys()
                   if found.get(key) != self.rows.get(key)]
            raise AssertionError(f"{len(odd)} rows are wrong, among them {sorted(odd)[:5]}")

    def numbers(self):
        """The server's metrics."""
        return metrics(self.server.admin_port)

    def installed(self):
        """Compactions that the pool did."""
        return self.numbers()["manxdb_compaction_remote_installed_total"]

    def local(self, reason):
        """Compactions that the server did itself."""
        return self.numbers()[f'manxdb_compaction_local_total{{reason="{reason}"}}']

    def shown(self):
        """What the server says of its compactions."""
        return {name: value for name, value in self.numbers().items()
                if name.startswith("manxdb_compaction") and value}

    def running(self):
        """Jobs that workers have."""
        return self.control.numbers()['manxdb_compactor_jobs{phase="running"}']

    def close(self):
        """Whatever is left of it."""
        if self.server:
            self.server.close()
        for role in [self.control, *self.workers]:
            role.end()
        self.directory.cleanup()


HOUSE = None


def house():
    """The one house of this run, with a server and a worker."""
    global HOUSE
    if HOUSE is None:
        HOUSE = House()
        HOUSE.start_worker()
        HOUSE.start_server()
        HOUSE.create()
    return HOUSE


def refused(*flags):
    """What `serve` says when it does not start."""
    with tempfile.TemporaryDirectory(prefix="manxdb-compaction-") as directory:
        command = [BINARY, "serve", "--data", f"{directory}/data", "--mysql-listen", "127.0.0.1:0",
                   "--admin-listen", "127.0.0.1:0", *flags]
        done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE, check=False)
    expect(done.returncode, 1, done.stdout)
    return done.stderr


@check
def settings_that_do_not_belong_together_are_refused_by_name():
    for flags, words in [
            (["--control", "127.0.0.1:1"], 'control is set, but compaction is "local"'),
            (["--compaction", "remote"], "control is not set"),
            (["--compaction", "remote", "--control", "127.0.0.1:1"], "compaction_volume is not set"),
            (["--compaction", "remote", "--control", "127.0.0.1:1", "--compaction-volume", "/mnt"],
             "is NAME=PLACE"),
            (["--compaction", "remote", "--control", "127.0.0.1:1",
              "--compaction-volume", f"fast={Path(BINARY).parent}"], "is not on the volume")]:
        said = refused(*flags)
        if words not in said:
            raise AssertionError(f"{flags}: {said}")


@check
def compactions_are_done_by_the_pool():
    here = house()
    here.write_until("five compactions by the pool", lambda: here.installed() >= 5)
    here.compare()
    for reason in ("refused", "unfit", "poison", "attempts"):
        expect(here.local(reason), 0, reason)
    numbers = here.numbers()
    if not numbers["manxdb_compaction_remote_input_bytes_total"] > 1_000_000:
        raise AssertionError(here.shown())
    finished = here.workers[0].numbers()["manxdb_compactor_worker_finished_total"]
    if finished < 5:
        raise AssertionError(f"the worker says that it finished {finished}")


@check
def a_worker_that_is_killed_takes_nothing_with_it():
    here = house()
    for _ in range(3):
        victim = here.workers[-1]
        here.write_until("a job runs", here.running)
        victim.end()
        here.start_worker()
        before = here.installed()
        here.write_until("the pool goes on", lambda: here.installed() > before)
        here.compare()
    expect(here.local("refused"), 0)


@check
def without_a_control_plane_compactions_are_done_here():
    here = house()
    here.control.end()
    before = here.local("away")
    here.write_until("compactions without a control plane", lambda: here.local("away") >= before + 2)
    here.compare()
    installed = here.installed()
    here.control = here.start_control()
    here.write_until("the pool is back", lambda: here.installed() > installed)
    here.compare()


@check
def a_server_that_is_killed_starts_again_with_its_rows():
    here = house()
    here.write_until("a job runs", here.running)
    here.server.kill()
    here.start_server()
    here.compare()
    here.write_until("the pool goes on", lambda: here.installed() >= 1)
    here.compare()


@check
def a_server_stops_without_waiting_for_a_worker_that_hangs():
    here = house()
    hanging = here.workers[-1]
    hanging.process.send_signal(signal.SIGSTOP)
    here.write_until("a job waits", lambda: here.numbers()["manxdb_compaction_remote_waiting"])
    expect(here.server.stop(), 0)
    # Not the worker's lease and not the job's deadline ended the wait.
    said = here.server.log_path.read_text()
    if 'reason="closing"' not in said:
        raise AssertionError(here.server.log_tail())
    hanging.process.send_signal(signal.SIGCONT)
    here.start_server()
    here.compare()


@check
def a_server_that_is_not_let_in_serves_all_the_same():
    here = house()
    expect(here.server.stop(), 0)
    wrong = here.path / "wrong"
    wrong.write_text("another secret\n")
    here.server.extra = here.server_flags(wrong)
    here.start_server()
    here.write_until("compactions without the pool", lambda: here.local("away") >= 1)
    here.compare()
    expect(here.installed(), 0)
    if "asks for its token" not in here.server.log_path.read_text():
        raise AssertionError(here.server.log_tail())


@check
def what_was_compacted_elsewhere_is_read_here():
    here = house()
    expect(here.server.stop(), 0)
    here.server.extra = ["--write-buffer-mb", "1"]
    here.start_server()
    here.compare()
    if any(name.startswith("manxdb_compaction_remote") for name in here.numbers()):
        raise AssertionError(here.shown())
    staging = here.path / "data" / "rocksdb" / "compactions-elsewhere"
    if staging.exists():
        raise AssertionError(f"{staging} is still there")
    expect(here.server.stop(), 0)
    said = here.server.log_path.read_text()
    for bad in ("panicked at", "are refused", "ERROR"):
        if bad in said:
            raise AssertionError([line for line in said.splitlines() if bad in line][:5])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
