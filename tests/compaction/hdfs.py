"""The same with HDFS: one name node and one data node of Hadoop's own (tests/hdfs)."""

import atexit
import subprocess
import tempfile
import threading
from pathlib import Path

from harness.checks import check, expect
from harness.pool import wait_for
from harness.suites import TESTS, target_directory
from fixture import Fixture

# A name node needs some of it to start; its seconds depend on the machine.
MEMORY = "-Xmx600m"
HDFS = None
FIXTURE = None


class Hdfs:
    """A cluster that is empty when it starts and ends with this program."""

    def __init__(self):
        class_path = target_directory() / "hdfs" / "classpath"
        if not class_path.exists():
            raise AssertionError(f"no {class_path}: scripts/setup.sh test makes it")
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-hdfs-")
        command = ["java", MEMORY, "-Dlog4j.configuration=file:/dev/null",
                   "-cp", class_path.read_text().strip(),
                   str(TESTS / "hdfs" / "MiniHdfs.java"), self.directory.name]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        atexit.register(self.end)
        words = (line.split() for line in self.process.stdout)
        self.port = next((two[1] for two in words if two[:1] == ["port"]), None)
        if self.port is None:
            raise AssertionError("the HDFS did not start")
        # Whatever else it says must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def bytes(self):
        """What its data node holds."""
        sizes = []
        for file in Path(self.directory.name).rglob("blk_*"):
            try:
                sizes.append(file.stat().st_size)
            except FileNotFoundError:
                pass  # it was just removed
        return sum(sizes)

    def end(self):
        """Kills it."""
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


def fixture():
    """The one fixture of these checks, with a server and a worker."""
    global HDFS, FIXTURE
    if FIXTURE is None:
        HDFS = Hdfs()
        FIXTURE = Fixture.with_all(f"far=hdfs://127.0.0.1:{HDFS.port}/copies")
    return FIXTURE


@check
def compactions_go_through_hdfs():
    here = fixture()
    here.compacts_through_a_store()
    if not HDFS.bytes() > 1_000_000:
        raise AssertionError(f"HDFS holds {HDFS.bytes()} bytes")


@check
def a_worker_killed_on_hdfs_takes_nothing_with_it():
    here = fixture()
    here.write_until("a job runs", here.running, here.workers[-1].end)
    here.start_worker()
    installed = here.installed()
    here.write_until("the pool goes on", lambda: here.installed() > installed)
    here.compare()
    expect(here.local("refused"), 0)


@check
def without_hdfs_compactions_are_done_here():
    here = fixture()
    HDFS.end()
    here.write_until("compactions without HDFS", lambda: here.local("storage") >= 2)
    here.compare()
    wait_for("no job waits", lambda: not here.numbers()["manxdb_compaction_remote_waiting"])
    expect(here.server.stop(), 0)
    here.start_server()
    here.compare()
    expect(here.server.stop(), 0)
    said = here.server.log_path.read_text()
    for bad in ("panicked at", "are refused"):
        if bad in said:
            raise AssertionError([line for line in said.splitlines() if bad in line][:5])
