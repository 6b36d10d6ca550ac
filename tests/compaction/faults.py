"""What fails while a worker is at work, and whether anything is lost, left over or believed.

After each fault the rows are those of the client's copy, what nobody installed is removed, and the
metrics say what became of the job.
"""

import atexit
import re
import signal
import subprocess
import time
from pathlib import Path

import pymysql

from harness.checks import Skip, check, expect
from harness.pool import wait_for
from fixture import Fixture

FIXTURE = None
# A tmpfs of this many bytes holds the server's data at its largest, twice.
DISK_BYTES = 192 << 20
DONE = re.compile(r"a compaction is done .*attempt=(\S+)")


def fixture():
    """The one fixture of these checks, with a server and a worker."""
    global FIXTURE
    if FIXTURE is None:
        FIXTURE = Fixture.with_all()
    return FIXTURE


@check
def a_worker_frozen_past_its_lease_is_not_listened_to_when_it_thaws():
    here = fixture()
    frozen = here.workers[-1]
    lost = here.control.numbers()["manxdb_compactor_lost_total"]
    late = late_ends(here, frozen)
    here.write_until("a job runs", here.running, lambda: frozen.process.send_signal(signal.SIGSTOP))
    here.start_worker()
    here.write_until("its lease runs out",
                     lambda: here.control.numbers()["manxdb_compactor_lost_total"] > lost)
    installed = here.installed()
    here.write_until("another worker goes on", lambda: here.installed() > installed)
    frozen.process.send_signal(signal.SIGCONT)
    wait_for("the thawed one is stopped, or comes too late", lambda: late_ends(here, frozen) > late)
    expect(here.local("refused"), 0)
    frozen.end()
    here.goes_on()


def late_ends(here, worker):
    """Attempts of a worker that were over before it said so."""
    return (here.control.numbers()["manxdb_compactor_late_total"]
            + worker.numbers()["manxdb_compactor_worker_stopped_total"])


@check
def a_control_plane_killed_with_a_job_under_way_goes_on_with_it():
    here = fixture()

    def kill_and_start():
        here.control.end()
        here.control = here.start_control()

    for _ in range(3):
        here.write_until("a job runs", here.running, kill_and_start)
        here.goes_on()
    expect(here.local("refused"), 0)


@check
def what_a_worker_makes_for_a_server_that_was_killed_is_removed():
    here = fixture()
    worker = here.workers[-1]
    here.write_until("a job runs", here.running, lambda: worker.process.send_signal(signal.SIGSTOP))
    here.server.kill()
    here.start_server()
    here.compare()
    worker.process.send_signal(signal.SIGCONT)
    here.goes_on()
    expect(here.local("refused"), 0)


@check
def outputs_damaged_before_they_are_installed_are_refused():
    for damage in (flip_a_bit, cut_the_end_off):
        here = fixture()
        before = here.local("refused")
        banned = here.control.numbers()["manxdb_compactor_refused_total"]

        def is_found():
            damage_outputs(here, damage)
            return here.local("refused") > before

        here.write_until(f"{damage.__name__} is found", is_found)
        here.compare()
        wait_for("the pool knows",
                 lambda: here.control.numbers()["manxdb_compactor_refused_total"] > banned)
        # The pool does not trust that worker any more.
        here.workers[-1].end()
        here.start_worker()
        here.goes_on()


def damage_outputs(here, damage):
    """What a worker has summed up is damaged before the database hears of it: the control plane,
    which would tell, stands still for so long. Whether there was any."""
    if not here.running():
        return False
    worker = here.workers[-1]
    here.control.process.send_signal(signal.SIGSTOP)
    try:
        attempts = here.attempts()
        deadline = time.monotonic() + 1  # databases wait three for a control plane
        while time.monotonic() < deadline:
            done = set(DONE.findall(plain(worker.log_path.read_text())))
            for directory in attempts:
                files = sorted(directory.glob("*.sst"))
                if directory.name in done and files:
                    damage(files[0])
                    return True
            time.sleep(0.01)
        return False
    except FileNotFoundError:
        return False  # it was installed in that moment
    finally:
        here.control.process.send_signal(signal.SIGCONT)


def plain(text):
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def flip_a_bit(file):
    """In the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    with open(file, "r+b") as same:
        same.write(content)


def cut_the_end_off(file):
    """One byte of it."""
    with open(file, "r+b") as same:
        same.truncate(file.stat().st_size - 1)


class Disk:
    """A small file system in memory."""

    def __init__(self, place):
        self.place = Path(place)
        self.place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", place],
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise Skip("a small file system needs the right to mount")

    def fill(self):
        """Takes what is free."""
        try:
            with open(self.place / "ballast", "ab", buffering=0) as ballast:
                while ballast.write(bytes(1 << 16)):
                    pass
        except OSError:
            pass  # it is full

    def free(self):
        """Gives it back."""
        (self.place / "ballast").unlink()

    def close(self):
        """Unmounts it."""
        subprocess.run(["umount", "-l", str(self.place)], capture_output=True, check=False)


@check
def a_shared_directory_that_is_full_loses_nothing():
    here = Fixture(disk=Disk)
    try:
        here.start_worker()
        here.start_server()
        here.create()
        here.write_until("the pool works", lambda: here.installed() >= 2)
        here.write_until("a job runs", here.running)
        refused = 0
        while refused < 5:
            here.disk.fill()
            try:
                here.write(1)
                refused = 0
            except pymysql.err.Error as error:
                expect(error.args[0], 1021, str(error))
                refused += 1
        here.compare()
        here.disk.free()
        wait_for("writes are possible", here.can_write)
        here.goes_on()
        expect(here.local("refused"), 0)
        expect(here.server.stop(), 0)
        here.start_server()
        here.compare()
    finally:
        here.close()


@check
def nothing_is_left_after_these_faults():
    fixture().ends_well()
