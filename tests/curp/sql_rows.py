"""Replicated rows lie on the disk of each server.

Rows of half a MiB each are written. One server loses its disk and gets everything again while a client writes, and is
killed in the midst of that; a master is killed, all are stopped, one server's rows are damaged. With
MANXDB_LARGE_MIB=1024 there are more rows than a server may take of memory, and what each takes is looked at.
On a small disk that is full, commits are refused and nothing is lost.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

from harness.checks import Skip, check, expect, expect_error
from processes import BINARY, PATIENCE, SqlCluster
from sql_sessions import BROKEN, connect, harmed, patiently, query

LARGE_MIB = int(os.environ.get("MANXDB_LARGE_MIB", "6"))
ROWS = 2 * LARGE_MIB
# What a server that is not the master may take of memory, however many rows there are.
PEAK_MIB = 320
DISK_MIB = 640


def peak(process):
    """The most memory that a process has had, in MiB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line, = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


def check_memory(cluster):
    """No server but the master, which has an engine of its own, has had more memory than it may."""
    master, _ = cluster.master()
    peaks = {number: peak(process) for number, process in servers(cluster).items()}
    print(f"peaks in MiB with {LARGE_MIB} MiB of rows: {peaks}, master {master}")
    for number, mebibytes in peaks.items():
        assert number == master or mebibytes < PEAK_MIB, f"server {number}: {mebibytes} MiB"


def servers(cluster):
    """The processes of servers that answer, by number."""
    nodes = [node for node in cluster.status()["nodes"] if node["number"] in (1, 2, 3)]
    return {node["number"]: node["answer"]["process"] for node in nodes if "process" in node["answer"]}


class Writer(threading.Thread):
    """Writes small rows while something else happens, and notes which were acknowledged."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.done, self.stop = cluster, [], threading.Event()

    def run(self):
        number, connection = 0, None
        while not self.stop.is_set():
            number += 1
            try:
                connection = connection or connect(random.choice(self.cluster.mysql_ports()), timeout=20)
                query(connection, f"INSERT INTO small VALUES ({number})")
                self.done.append(number)
            except BROKEN:
                connection = None
                time.sleep(0.05)


def write_large(cluster):
    """Rows of half a MiB that no compression makes smaller; what they add up to."""
    def make(connection):
        query(connection, "CREATE DATABASE bank")
        query(connection, "CREATE TABLE bank.small (id INT PRIMARY KEY)")
        query(connection, "CREATE TABLE bank.large (id INT PRIMARY KEY, words LONGTEXT)")

    patiently(cluster, make)
    number, _ = cluster.master()
    connection = connect(cluster.mysql_port(number))
    for row in range(ROWS):
        words = random.Random(row).randbytes(256 << 10).hex()
        query(connection, f"INSERT INTO large VALUES ({row}, '{words}')")
    connection.close()
    return patiently(cluster, sum_of_large)


def sum_of_large(connection):
    """What must not change."""
    return query(connection, "SELECT count(*), sum(crc32(words)), sum(length(words)) FROM bank.large")


def lose_disk(cluster, number):
    """Starts a stopped cluster again, with one server's directory gone."""
    shutil.rmtree(cluster.data_of(number))
    cluster.start()


def wait_for_copy(cluster, mebibytes):
    """Until the master has sent so much of a copy."""
    deadline = time.monotonic() + PATIENCE
    while int(cluster.of_master("copied bytes") or 0) < mebibytes << 20:
        assert time.monotonic() < deadline, "no copy is made"
        time.sleep(0.01)


@check
def rows_on_disk_are_copied_while_writes_go_on_and_outlive_masters_and_restarts():
    # Servers on one disk write all rows some ten times, and one that waits for the disk is silent meanwhile.
    cluster = SqlCluster("--supervise", suspect_ms=2000)
    try:
        cluster.wait_whole()
        large = write_large(cluster)
        expect(large[0][0], ROWS)
        master, _ = cluster.master()
        check_memory(cluster)
        cluster.wait_on_disk()
        cluster.stop_in_order()
        lose_disk(cluster, number=master % 3 + 1)
        writer = Writer(cluster)
        writer.start()
        wait_for_copy(cluster, 3)
        os.kill(servers(cluster)[master % 3 + 1], signal.SIGKILL)  # in the middle of its copy
        cluster.wait_whole()
        cluster.wait_followed()
        check_memory(cluster)
        harmed("kill", "master", wait=2.5)(cluster)
        cluster.wait_whole()
        expect(patiently(cluster, sum_of_large), large, "after a master was killed")
        writer.stop.set()
        writer.join(timeout=PATIENCE)
        there = patiently(cluster, lambda connection: query(connection, "SELECT id FROM bank.small"))
        expect([one for one in writer.done if (one,) not in set(there)], [], "acknowledged and lost")
        assert len(writer.done) > 20, f"{len(writer.done)} rows were written meanwhile"
        damaged_rows_are_named(cluster)
    finally:
        cluster.close()


def damaged_rows_are_named(cluster):
    """A server whose rows are damaged does not start, and says what to do."""
    cluster.wait_on_disk()
    cluster.stop_in_order()
    for catalogue in cluster.data_of(1).glob("replicated/*/rocksdb/CURRENT"):
        catalogue.unlink()
    ran = subprocess.run([BINARY, "serve", "--commit-path", "curp", "--data", str(cluster.data_of(1)),
                          "--mysql-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
                          "--curp-cluster", str(cluster.data), "--curp-node", "1"],
                         text=True, check=False, capture_output=True, timeout=PATIENCE)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 1 and "replicated" in said and "empty" in said, said


class OnSmallDisk(SqlCluster):
    """One whose servers keep everything on one small file system."""

    def start(self):
        if not self.data.exists():
            self.data.mkdir()
            self.image = self.data.with_name("image")
            with open(self.image, "wb") as image:
                image.truncate(DISK_MIB << 20)
            self.call("mkfs.ext4", "-q", "-m", "0", self.image)
            self.call("mount", "-o", "loop", self.image, self.data)
        super().start()

    @staticmethod
    def call(*command):
        """Runs a command, or skips the check where it is not possible."""
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Skip(f"no small disk: {done.stderr.strip()}")

    def fill(self, left_mib):
        """Takes all room but so much; what gives it back."""
        found = os.statvfs(self.data)
        ballast = self.data / "ballast"
        self.call("fallocate", "-l", str(found.f_bavail * found.f_frsize - (left_mib << 20)), ballast)
        return ballast.unlink

    def close(self):
        if getattr(self, "up", None) and self.up.poll() is None:
            self.stop_in_order()
        subprocess.run(["umount", str(self.data)], capture_output=True, check=False)
        self.directory.cleanup()


@check
def a_commit_is_refused_while_the_disk_is_full_and_nothing_is_lost():
    cluster = OnSmallDisk("--supervise")
    try:
        cluster.wait_whole()
        patiently(cluster, lambda connection: query(connection, "CREATE DATABASE bank"))
        number, _ = cluster.master()
        connection = connect(cluster.mysql_port(number))
        query(connection, "CREATE TABLE small (id INT PRIMARY KEY, word TEXT)")
        query(connection, "INSERT INTO small VALUES (1, 'before')")
        give_back = cluster.fill(left_mib=64)
        for statement in ("INSERT INTO small VALUES (2, 'full')", "UPDATE small SET word = 'full'"):
            refused = expect_error(1021, query, connection, statement)
            assert "make room on the disk" in str(refused), refused
        expect(query(connection, "SELECT * FROM small"), ((1, "before"),))
        give_back()
        query(connection, "INSERT INTO small VALUES (3, 'after')")
        harmed("kill", "master", wait=1.2)(cluster)
        rows = patiently(cluster, lambda connection: query(connection, "SELECT * FROM bank.small"))
        expect(rows, ((1, "before"), (3, "after")))
    finally:
        cluster.close()
