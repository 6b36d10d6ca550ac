"""Programs with a RocksDB of their own whose compactions are done by a pool, through
libmanxdb_compaction.so: one each in C++, Java and Go, and a few lines of C.

The programs are the library's examples. They compare their databases with copies of what they wrote
and say where RocksDB says that compactions were done. What a program brings along that no worker has
must be done by the program; so must everything when the pool is not there.

    run.py [word of a check's name …]
"""

import atexit
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from harness.checks import check, expect, main
from harness.pool import PATIENCE, Role, metrics, wait_for
from harness.servers import free_port
from harness.suites import ROOT, target_directory

CRATE = ROOT / "crates" / "compaction-library"
PLACE = target_directory() / "library"
LIBRARY = target_directory() / "debug" / "libmanxdb_compaction.so"
JAR = PLACE / "rocksdbjni-11.8.1.jar"
MEMBERS = {"x86_64": "linux64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le",
           "riscv64": "linux-riscv64", "s390x": "linux-s390x"}
LAST = re.compile(r"pool (\d+)(?: here (\d+)| bytes) all (\d+) keys are right\Z")


def run(*command, **more):
    """A program that must succeed; what it says."""
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


@cache
def headers():
    """RocksDB's headers, in the source of the crate that is linked with the same release."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    [package] = [one for one in packages["packages"] if one["name"] == "librocksdb-sys"]
    return Path(package["manifest_path"]).parent / "rocksdb" / "include"


@cache
def rocksdb():
    """A directory with librocksdb.so: Java's library has RocksDB's C and C++ interface too."""
    member = f"librocksdbjni-{MEMBERS[platform.machine()]}.so"
    with zipfile.ZipFile(JAR) as jar, jar.open(member) as packed:
        with open(PLACE / "librocksdb.so", "wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    return PLACE


def compile_program(compiler, source, name, *more):
    """The path of a program."""
    program = PLACE / name
    here = ["-I", CRATE / "include", "-I", headers(), "-Wall", "-Wextra", "-Werror"]
    libraries = ["-L", LIBRARY.parent, f"-Wl,-rpath,{LIBRARY.parent}", "-lmanxdb_compaction"]
    run(*compiler, *here, source, "-o", program, *libraries, *more)
    return program


def with_rocksdb():
    """What links a program with it."""
    return ["-L", rocksdb(), f"-Wl,-rpath,{rocksdb()}", "-lrocksdb"]


@cache
def cpp():
    """The example in C++."""
    # Java's library is made without the types' own descriptions.
    compiler = ["g++", "-std=c++20", "-O1", "-fno-rtti", "-isystem", headers()]
    return compile_program(compiler, CRATE / "examples/cpp/fill.cpp", "fill", *with_rocksdb())


@cache
def java():
    """The example in Java: its command so far."""
    classes = PLACE / "classes"
    sources = [CRATE / "examples/java/Fill.java", CRATE / "examples/java/manxdb/Compaction.java"]
    run("javac", "-Xlint:all", "-Werror", "-d", classes, "-cp", JAR, *sources)
    return ["java", "-cp", f"{classes}:{JAR}", "Fill", str(LIBRARY)]


@cache
def go():
    """The example in Go."""
    flags = {"CGO_CFLAGS": f"-I{CRATE / 'include'} -I{headers()}", "CGO_ENABLED": "1",
             "CGO_LDFLAGS": " ".join(map(str, ["-L", LIBRARY.parent,
                                               f"-Wl,-rpath,{LIBRARY.parent}", *with_rocksdb()]))}
    program = PLACE / "fill-go"
    # Named by its file, it needs no module.
    run("go", "build", "-o", program, CRATE / "examples/go/fill.go", env={**os.environ, **flags})
    return program


class Fixture:
    """A pool and the programs that use it."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="manxdb-library-")
        self.path = Path(self.directory.name)
        self.token = self.path / "token"
        self.token.write_text("a secret\n")
        self.control_port = free_port()
        self.control = Role(self.path, "control", "control", "--listen",
                            f"127.0.0.1:{self.control_port}", "--store", str(self.path / "control"),
                            "--token-file", str(self.token))
        self.workers = []
        self.start_worker()
        self.count = 0
        atexit.register(self.close)

    def start_worker(self):
        """One more worker."""
        name = f"worker-{len(self.workers)}"
        worker = Role(self.path, name, "worker", "--control", f"127.0.0.1:{self.control_port}",
                      "--volume", f"fast={self.path}", "--token-file", str(self.token))
        self.workers.append(worker)

    def running(self):
        """Jobs that workers have."""
        return self.control.numbers()['manxdb_compactor_jobs{phase="running"}']

    def program(self, command, *arguments, **settings):
        """A program that is about to run, on a database of its own."""
        self.count += 1
        return Program(self, f"program-{self.count}", command, arguments, settings)

    def close(self):
        """Ends the pool."""
        for role in [self.control, *self.workers]:
            role.end()
        self.directory.cleanup()


class Program:
    """A program with a database."""

    def __init__(self, here, name, command, arguments, settings):
        self.database = here.path / name
        self.log = here.path / f"{name}.log"
        self.metrics_port = free_port()
        settings = {"control": [f"127.0.0.1:{here.control_port}"],
                    "compaction_volume": f"fast={here.path}",
                    "compaction_token_file": str(here.token),
                    "compaction_min_mb": 0,
                    "compaction_log": str(self.log),
                    "compaction_metrics": f"127.0.0.1:{self.metrics_port}", **settings}
        file = here.path / f"{name}.toml"
        # A list, a text or a number in JSON is one in TOML.
        file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
        words = [*command, self.database, file, *arguments]
        self.process = subprocess.Popen([str(word) for word in words], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)

    def round(self):
        """Waits for its next round: compactions so far by the pool, and by the program."""
        line = self.process.stdout.readline()
        found = re.match(r"pool (\d+) here (\d+)$", line)
        if not found:
            raise AssertionError(f"{line} {self.process.stdout.read()[-2000:]} {self.said()[-2000:]}")
        return int(found[1]), int(found[2])

    def go_on_until(self, what, holds):
        """Lets it write until it holds."""
        wait_for(what, lambda: self.round() and holds())

    def installed(self):
        """Compactions whose outputs by a worker were installed, as the library counts them."""
        return self.numbers().get("manxdb_compaction_remote_installed_total", 0)

    def end(self):
        """Compactions by the pool (in Java and Go: bytes that it read), and by the program."""
        said, _ = self.process.communicate("over\n", timeout=PATIENCE)
        found = LAST.search(said.rstrip("\n"))
        if self.process.returncode != 0 or not found or int(found[3]) < 5_000:
            raise AssertionError(f"{self.process.returncode}: {said[-2000:]} {self.said()[-2000:]}")
        self.check_nothing_left()
        return int(found[1]), int(found[2] or 0)

    def check_nothing_left(self):
        """No outputs of anybody's are left, and no worker said anything wrong."""
        staging = self.database / "compactions-elsewhere"
        if staging.exists() and any(staging.iterdir()):
            raise AssertionError(f"left: {list(staging.iterdir())}")
        for bad in ("panicked", "are refused", "ERROR"):
            if bad in self.said():
                raise AssertionError(self.said()[-2000:])

    def said(self):
        """The library's log."""
        return self.log.read_text() if self.log.exists() else ""

    def numbers(self):
        """The library's metrics."""
        return metrics(self.metrics_port)


FIXTURE = None


def fixture():
    """The one pool of this run."""
    global FIXTURE
    if FIXTURE is None:
        FIXTURE = Fixture()
    return FIXTURE


@check
def the_library_has_no_rocksdb_inside_and_needs_none_by_its_name():
    dynamic = run("readelf", "--dynamic", "--wide", LIBRARY).splitlines()
    needed = [line for line in dynamic if "(NEEDED)" in line]
    expect([line for line in needed if "rocksdb" in line], [])
    expect(any("libc.so" in line for line in needed), True, needed)
    symbols = run("nm", "--dynamic", LIBRARY).splitlines()
    names = {line.split()[-1] for line in symbols}
    expect([name for name in names if "rocksdb" in name.lower()], [])
    ours = {line.split()[-1] for line in symbols if " T " in line}
    expect(ours, {"manxdb_compaction_service", "Java_manxdb_Compaction_install"})


@check
def a_program_in_c_is_told_what_is_wrong():
    source = CRATE / "examples" / "c" / "service.c"
    compiler = ["cc", "-std=c99"]
    without = compile_program(compiler, source, "service-without", "-DNO_ROCKSDB")
    said = run(without, "control = []")
    expect("no RocksDB of release 11.8 is to be seen" in said, True, said)
    program = compile_program(compiler, source, "service", *with_rocksdb())
    here = fixture()
    for settings, words in [
            ("control = []\ncompaction_volume = 'a=/tmp'", "control is empty"),
            ("control = ['a:1']", "missing field `compaction_volume`"),
            ("control = ['a:1']\ncompaction_volume = 'a=/not there'", "/not there"),
            ("control = ['a:1']\ncompaction_volume = 'a=/tmp'\nspeed = 1", "unknown field `speed`"),
            ("/not/there.toml", "cannot read /not/there.toml")]:
        said = run(program, settings)
        expect(words in said, True, said)
    settings = f"control = ['a:1']\ncompaction_volume = 'a={here.path}'"
    said = run(program, settings)
    expect(said, "a service\n")
    # As with a second service of the same metrics: the error says which setting it is.
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        said = run(program, f"{settings}\ncompaction_metrics = '{taken}'")
    expect(said.startswith(f"compaction_metrics {taken}: Address already in use"), True, said)


@check
def compactions_of_a_program_in_cpp_are_done_by_the_pool():
    here = fixture()
    for kind in ("plain", "shape", "families"):
        program = here.program([cpp()], kind, "40")
        pool, _ = program.end()
        if pool < 5:
            raise AssertionError(f"{kind}: {pool} by the pool: {program.said()[-2000:]}")
        expect("stays at home" in program.said(), False, program.said()[-2000:])


@check
def a_program_with_code_of_its_own_compacts_itself_and_says_why():
    here = fixture()
    for kind, words in [("merge", "merge operator of its own, example.append"),
                        ("filter", "compaction filter of its own, example.nines"),
                        ("blobs", "keeps values in blob files")]:
        program = here.program([cpp()], kind, "-")
        wait_for("two compactions by the program", lambda: program.round()[1] >= 2)
        unfit = program.numbers()['manxdb_compaction_local_total{reason="unfit"}']
        if unfit < 1:
            raise AssertionError(f"{kind}: {program.numbers()}")
        pool, local = program.end()
        expect(pool, 0, kind)
        expect(local > 1, True, kind)
        expect(program.said().count(words), 1, program.said()[-2000:])


@check
def without_a_control_plane_a_program_compacts_itself():
    here = fixture()
    nobody = f"127.0.0.1:{free_port()}"
    program = here.program([cpp()], "plain", "40", control=[nobody])
    pool, local = program.end()
    expect(pool, 0)
    expect(local > 1, True)
    expect('reason="away"' in program.said(), True, program.said()[-2000:])


@check
def a_program_that_is_not_let_in_compacts_itself():
    here = fixture()
    wrong = here.path / "wrong"
    wrong.write_text("another secret\n")
    program = here.program([cpp()], "plain", "40", compaction_token_file=str(wrong))
    expect(program.end()[0], 0)
    expect("asks for its token" in program.said(), True, program.said()[-2000:])


@check
def a_database_that_is_not_on_the_volume_is_compacted_by_its_program():
    here = fixture()
    elsewhere = here.path / "elsewhere"
    elsewhere.mkdir()
    program = here.program([cpp()], "plain", "30", compaction_volume=f"fast={elsewhere}")
    expect(program.end()[0], 0)
    expect(program.said().count("is not on the volume"), 1, program.said()[-2000:])


@check
def a_worker_that_is_killed_takes_nothing_with_it():
    here = fixture()
    program = here.program([cpp()], "plain", "-")
    for _ in range(3):
        program.go_on_until("a job runs", here.running)
        here.workers[-1].end()
        here.start_worker()
        before = program.installed()
        program.go_on_until("the pool goes on", lambda: program.installed() > before)
    pool, _ = program.end()
    expect(pool >= 3, True)


@check
def a_worker_that_hangs_is_not_waited_for():
    here = fixture()
    program = here.program([cpp()], "plain", "-")
    program.go_on_until("a job runs", here.running)
    hanging = here.workers[-1]
    hanging.process.send_signal(signal.SIGSTOP)
    program.end()
    hanging.process.send_signal(signal.SIGCONT)


@check
def compactions_of_a_program_in_java_are_done_by_the_pool():
    here = fixture()
    program = here.program(java(), "plain")
    bytes_read, _ = program.end()
    if bytes_read < 1_000_000:
        raise AssertionError(f"{bytes_read} bytes: {program.said()[-2000:]}")
    expect("stays at home" in program.said(), False, program.said()[-2000:])


@check
def a_program_in_java_with_a_merge_operator_compacts_itself():
    here = fixture()
    program = here.program(java(), "merge")
    expect(program.end()[0], 0)
    expect(program.said().count("merge operator of its own"), 1, program.said()[-2000:])


@check
def compactions_of_a_program_in_go_are_done_by_the_pool():
    here = fixture()
    program = here.program([go()], "plain")
    bytes_read, _ = program.end()
    if bytes_read < 1_000_000:
        raise AssertionError(f"{bytes_read} bytes: {program.said()[-2000:]}")
    expect("stays at home" in program.said(), False, program.said()[-2000:])


@check
def a_program_in_go_with_a_merge_operator_compacts_itself():
    here = fixture()
    program = here.program([go()], "merge")
    expect(program.end()[0], 0)
    expect(program.said().count("merge operator of its own"), 1, program.said()[-2000:])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
