"""A server, the pool that compacts for it, and a client that knows what the rows should be."""

import atexit
import json
import random
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql

from harness.checks import expect
from harness.pool import BINARY, PATIENCE, Role, metrics, wait_for
from harness.servers import PASSWORD, Manxdb, free_port

ROWS = 6_000
PAD = 400


class Fixture:
    """A server, its pool, and a client that knows what the rows should be."""

    def __init__(self, volume=None, disk=None):
        """`volume` is NAME=PLACE; without one it is a directory that the server's is in. `disk`
        makes a file system of its own for that directory."""
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-compaction-")
        self.path = Path(self.directory.name)
        shared = self.path / "disk" if disk else self.path
        self.disk = disk(shared) if disk else None
        self.data = shared / "data"
        self.volume = volume or f"fast={shared}"
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

    @classmethod
    def with_all(cls, volume=None):
        """A fixture with a worker, a server, and the tables to write to."""
        fixture = cls(volume)
        fixture.start_worker()
        fixture.start_server()
        fixture.create()
        return fixture

    def compacts_through_a_store(self):
        """Compactions by the pool move bytes of both sides through the store, and nothing is
        refused."""
        self.write_until("three compactions by the pool", lambda: self.installed() >= 3)
        self.compare()
        for reason in ("refused", "unfit", "poison", "attempts", "storage"):
            expect(self.local(reason), 0, reason)
        numbers = self.numbers()
        for moved in ("put", "fetched"):
            if not numbers[f"manxdb_compaction_remote_{moved}_bytes_total"] > 1_000_000:
                raise AssertionError(self.shown())
        fetched = self.workers[0].numbers()["manxdb_compactor_worker_fetched_bytes_total"]
        if not fetched > 1_000_000:
            raise AssertionError(f"the worker fetched {fetched} bytes")

    def address(self):
        """Where control planes are, for `--control`."""
        return f"127.0.0.1:{self.control_port}"

    def start_worker(self, address=None):
        """One more worker; `address` is a way of its own to the control plane."""
        worker = Role(self.path, f"worker-{len(self.workers)}", "worker",
                      "--control", address or self.address(),
                      "--volume", self.volume, "--scratch", str(self.path / "scratch"),
                      *self.secret())
        self.workers.append(worker)
        return worker

    def server_flags(self, token, address=None):
        """Flags of a server that hands compactions out."""
        return ["--compaction", "remote", "--control", address or self.address(),
                "--compaction-volume", self.volume, "--compaction-min-mb", "0",
                "--compaction-token-file", str(token), "--write-buffer-mb", "1",
                "--durability", "async"]

    def start_server(self, address=None):
        """The server, again after it ended; `address` is a way of its own to the control plane."""
        if self.server is None:
            self.server = Manxdb(BINARY, self.server_flags(self.token, address))
            self.server.data = self.data
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

    def can_write(self):
        """Writes a little, if that is possible again."""
        try:
            self.write(1)
        except pymysql.err.Error:
            return False
        return True

    def write_until(self, what, holds, then=lambda: None):
        """Writes until it holds, and does something about it before the writing ends: a job that
        runs may be over a moment later."""
        deadline = time.monotonic() + PATIENCE
        with ThreadPoolExecutor() as side:
            while True:
                writing = side.submit(self.write)
                while not writing.done():
                    if holds():
                        then()
                        return writing.result()
                    time.sleep(0.005)
                writing.result()
                if time.monotonic() > deadline:
                    raise AssertionError(f"this does not come: {what}: {self.shown()}")

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

    def pool_page(self, accept="text/html"):
        """The server's page about its pool: HTML, or what it is made of."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.admin_port}/compaction",
                                         headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        return json.loads(text) if accept == "application/json" else text

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

    def attempts(self):
        """Directories that workers make outputs in."""
        staging = self.data / "rocksdb" / "compactions-elsewhere"
        return sorted(staging.iterdir()) if staging.exists() else []

    def goes_on(self):
        """The pool compacts again, no row is wrong and nothing is left."""
        installed = self.installed()
        self.write_until("the pool goes on", lambda: self.installed() > installed)
        self.compare()
        wait_for("no job waits", lambda: not self.numbers()["manxdb_compaction_remote_waiting"])
        wait_for("outputs of others are gone", lambda: not self.attempts())

    def ends_well(self):
        """The server stops, leaves nothing, and has the rows when it starts again."""
        expect(self.server.stop(), 0)
        expect(self.attempts(), [])
        self.start_server()
        self.compare()
        expect(self.server.stop(), 0)
        said = self.server.log_path.read_text()
        for bad in ("panicked at", "Corruption"):
            if bad in said:
                raise AssertionError([line for line in said.splitlines() if bad in line][:5])

    def running(self):
        """Jobs that workers have."""
        return self.control.numbers()['manxdb_compactor_jobs{phase="running"}']

    def close(self):
        """Whatever is left of it."""
        if self.server:
            self.server.close()
        for role in [self.control, *self.workers]:
            role.end()
        if self.disk:
            self.disk.close()
        self.directory.cleanup()
