"""A server whose compactions are done by a pool of other processes, some of which die.

Rows are written, replaced and deleted by one client that keeps a copy of what was acknowledged;
the write buffer is small, so that compactions are many. Whatever happens to the pool, the rows
must be those of the copy, and the metrics must say where compactions were done.

    run.py [word of a check's name …]
"""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import faults  # the checks of these five run first
import hdfs
import network
import objects
import planes
from harness.checks import check, expect, main
from harness.pool import BINARY, PATIENCE
from fixture import Fixture

FIXTURE = None


def fixture():
    """The one fixture of this run, with a server and a worker."""
    global FIXTURE
    if FIXTURE is None:
        FIXTURE = Fixture.with_all()
    return FIXTURE


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
    here = fixture()
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
def the_console_shows_which_worker_does_a_job_of_this_server():
    here = fixture()

    def own_job_runs():
        pool = here.pool_page("application/json")
        workers = {worker["worker"] for worker in pool["workers"]}
        return any(job["database"] == pool["own"] and job["worker"] in workers for job in pool["jobs"])

    here.write_until("a job of this server on a worker", own_job_runs)
    worker = here.pool_page("application/json")["workers"][0]["worker"]
    page = here.pool_page()
    for words in ("The only control plane answers.", worker, here.address()):
        if words not in page:
            raise AssertionError(f"{words}: {page}")


@check
def a_worker_that_is_killed_takes_nothing_with_it():
    here = fixture()
    for _ in range(3):
        victim = here.workers[-1]
        here.write_until("a job runs", here.running, victim.end)
        here.start_worker()
        before = here.installed()
        here.write_until("the pool goes on", lambda: here.installed() > before)
        here.compare()
    expect(here.local("refused"), 0)


@check
def without_a_control_plane_compactions_are_done_here():
    here = fixture()
    here.control.end()
    before = here.local("away")
    here.write_until("compactions without a control plane", lambda: here.local("away") >= before + 2)
    here.compare()
    page = here.pool_page()
    if "No control plane answers" not in page:
        raise AssertionError(page)
    installed = here.installed()
    here.control = here.start_control()
    here.write_until("the pool is back", lambda: here.installed() > installed)
    here.compare()


@check
def a_server_that_is_killed_starts_again_with_its_rows():
    here = fixture()
    here.write_until("a job runs", here.running)
    here.server.kill()
    here.start_server()
    here.compare()
    here.write_until("the pool goes on", lambda: here.installed() >= 1)
    here.compare()


@check
def a_server_stops_without_waiting_for_a_worker_that_hangs():
    here = fixture()
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
    here = fixture()
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
    here = fixture()
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
