"""More replicated rows than memory: they lie on the disk of each server.

Rows of 1 MiB each are written until they are more than all could be while they were in memory. One server
loses its disk and gets everything again while a client writes, and is killed in the midst of that; a master
is killed, all are stopped, one server's rows are damaged.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

from harness.checks import check, expect
from processes import BINARY, PATIENCE, SqlCluster
from sql_sessions import BROKEN, connect, harmed, patiently, query

# More than all rows of a cluster could take while they were in memory, and what a server that is not the
# master may take instead.
LARGE_MIB = 176
PEAK_MIB = 160


def peak(process):
    """The most memory that a process has had, in MiB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line, = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


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
    """Rows of 1 MiB that no compression makes smaller; what they add up to."""
    def make(connection):
        query(connection, "CREATE DATABASE bank")
        query(connection, "CREATE TABLE bank.small (id INT PRIMARY KEY)")
        query(connection, "CREATE TABLE bank.large (id INT PRIMARY KEY, words LONGTEXT)")

    patiently(cluster, make)
    number, _ = cluster.master()
    connection = connect(cluster.mysql_port(number))
    for row in range(0, LARGE_MIB, 4):
        words = [random.Random(row + one).randbytes(512 << 10).hex() for one in range(4)]
        rows = ", ".join(f"({row + one}, '{text}')" for one, text in enumerate(words))
        query(connection, f"INSERT INTO large VALUES {rows}")
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
def more_rows_than_memory_are_copied_while_writes_go_on_and_outlive_masters_and_restarts():
    cluster = SqlCluster("--supervise")
    try:
        cluster.wait_whole()
        large = write_large(cluster)
        expect(large[0][0], LARGE_MIB)
        master, _ = cluster.master()
        for number, process in servers(cluster).items():
            assert number == master or peak(process) < PEAK_MIB, f"server {number}: {peak(process)} MiB"
        cluster.wait_on_disk()
        cluster.stop_in_order()
        lose_disk(cluster, number=master % 3 + 1)
        writer = Writer(cluster)
        writer.start()
        wait_for_copy(cluster, 8)
        os.kill(servers(cluster)[master % 3 + 1], signal.SIGKILL)  # in the middle of its copy
        cluster.wait_whole()
        cluster.wait_followed()
        for number, process in servers(cluster).items():
            is_master = number == cluster.master()[0]
            assert is_master or peak(process) < PEAK_MIB, f"server {number}: {peak(process)} MiB"
        harmed("kill", "master", wait=1.2)(cluster)
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
