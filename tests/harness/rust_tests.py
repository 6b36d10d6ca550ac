"""Rust tests: built once by cargo, which says which programs it made, then run by this module.

Run by hand, each test's time is known and a test that skips itself is counted as skipped."""

import json
import os
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.suites import FEATURES, ROOT, target_directory

BUILD = ("cargo", "test", "--workspace", *FEATURES, "--no-run")
RESULT = re.compile(r"^test (?P<name>\S+)( - should panic)? \.\.\. (?P<word>ok|FAILED|ignored)(?P<why>.*?)"
                    r"( <(?P<seconds>[\d.]+)s>)?$")
SUMMARY = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
# Programs whose tests wait for leases, disks and other processes most of the time.
WAITING = {"compaction/edge", "compaction/faults", "compaction/pool", "compaction/stores", "curp-sql/it",
           "gateway/idle_connections", "storage", "storage/crash", "storage/it"}
# Programs that run now.
RUNNING = set()


@dataclass
class Program:
    """One test program of a crate."""

    crate: str
    name: str
    kind: str
    path: str
    folder: str

    @property
    def title(self):
        """How it is told apart."""
        return self.crate if self.kind in ("lib", "bin") else f"{self.crate}/{self.name}"


def build(report, *more):
    """Builds all test programs and the programs they run; None when that fails."""
    process = subprocess.Popen([*BUILD, "--message-format=json-render-diagnostics", *more], cwd=ROOT,
                               text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    programs = []
    for line in process.stdout:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        if not message["profile"]["test"]:
            continue
        folder = Path(message["manifest_path"]).parent
        target = message["target"]
        crate = str(folder.relative_to(ROOT)).removeprefix("crates/")
        programs.append(Program(crate, target["name"], target["kind"][0], message["executable"], str(folder)))
    code = process.wait()
    if code != 0:
        report.add_failed("cargo", "cargo test --no-run", f"ended with {code}")
        return None
    return sorted(programs, key=lambda program: program.title)


def run_examples(report):
    """The examples in the documentation of crates, which cargo alone can run."""
    done = subprocess.run([*BUILD[:-1], "--doc", "--no-fail-fast"], cwd=ROOT, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    sums = [SUMMARY.match(line) for line in done.stdout.splitlines()]
    passed = sum(int(found[1]) for found in sums if found)
    failed = sum(int(found[2]) for found in sums if found)
    report.passed += passed
    print(f"   examples in documentation: {passed} passed, {failed} failed", flush=True)
    if done.returncode != 0 or failed or not any(sums):
        report.add_failed("cargo", "examples in documentation", f"ended with {done.returncode}\n{done.stdout[-3000:]}")


def library_path():
    """Where cargo would have the loader look."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], text=True, capture_output=True, check=True)
    places = [target_directory() / "debug" / "deps", target_directory() / "debug",
              Path(sysroot.stdout.strip()) / "lib", os.environ.get("LD_LIBRARY_PATH", "")]
    return ":".join(str(place) for place in places if str(place))


def environment(program, skipped, libraries):
    """As cargo runs a test. RUSTC_BOOTSTRAP lets the test library measure each test; nothing is compiled
    under it."""
    return {**os.environ, "CARGO_MANIFEST_DIR": program.folder, "CARGO": os.environ.get("CARGO", "cargo"),
            "LD_LIBRARY_PATH": libraries, "MANXDB_SKIPPED": str(skipped), "RUSTC_BOOTSTRAP": "1"}


def wait_counted(process):
    """Waits for a process; gives its exit code, and the CPU seconds of it and of all that it waited for."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def run_program(program, arguments, libraries):
    """Runs one; gives (program, its lines, exit code, what it skipped, seconds, of these of the processor)."""
    with tempfile.NamedTemporaryFile(prefix="manxdb-skipped-") as skipped:
        began = time.monotonic()
        process = subprocess.Popen([program.path, "-Zunstable-options", "--report-time", *arguments],
                                   cwd=program.folder, env=environment(program, skipped.name, libraries),
                                   text=True, errors="replace", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        RUNNING.add(process)
        lines = process.stdout.read().splitlines()
        code, busy = wait_counted(process)
        RUNNING.discard(process)
        told = dict(line.split("\t", 1) for line in Path(skipped.name).read_text().splitlines() if "\t" in line)
    return program, lines, code, told, time.monotonic() - began, busy


def take(report, ran):
    """Counts what a program's lines say. What is not as expected is a failure, never a success."""
    program, lines, code, skipped, seconds, busy = ran
    passed = failed = 0
    summary = None
    for line in lines:
        if match := SUMMARY.match(line):
            summary = (int(match[1]), int(match[2]))
        if not (match := RESULT.match(line)):
            continue
        name = match["name"]
        if match["seconds"]:
            report.add_time(f"{program.title} {name}", float(match["seconds"]))
        if match["word"] == "FAILED":
            failed += 1
            report.add_failed("cargo", f"{program.title} {name}", "see above")
        elif match["word"] == "ok":
            passed += 1
            if name not in skipped:
                report.add_passed("cargo", f"{program.title} {name}", quiet=True)
    for name, why in skipped.items():
        report.add_skipped("cargo", f"{program.title} {name}", why)
    report.say(f"   {program.title}: {passed - len(skipped)} passed, {failed} failed, {len(skipped)} skipped, "
               f"{seconds:.0f} s, {busy:.0f} s of CPU")
    if summary is None or code not in (0, 101) or (code != 0) != (failed > 0) or summary[0] < passed:
        report.add_failed("cargo", program.title, f"ended with {code}; said {summary}, counted {passed} and {failed}")
    elif summary[0] > passed:
        # Lines that a test's own output was mixed into.
        report.passed += summary[0] - passed


def run_each(report, runs, libraries):
    """Runs programs, each with its arguments, one after the other: most use every processor by themselves."""
    for program, arguments in runs:
        report.say(f"== {program.title}")
        ran = run_program(program, arguments, libraries)
        failures = len(report.failures)
        take(report, ran)
        if len(report.failures) > failures:
            report.say("\n".join(ran[1]))


def run(report, programs, arguments=(), ignored=()):
    """Runs programs, and those that mostly wait beside the others, as are the tests of `ignored` programs that
    cargo alone would not run."""
    libraries = library_path()
    waiting = [(program, arguments) for program in programs if program.title in WAITING]
    waiting += [(program, ["--ignored"]) for program in ignored]
    busy = [(program, arguments) for program in programs if program.title not in WAITING]
    part = report.part()
    with ThreadPoolExecutor(1) as beside:
        try:
            done = beside.submit(run_each, part, waiting, libraries)
            run_each(report, busy, libraries)
            done.result()
        except BaseException:
            # The thread ends behind the program that it waits for.
            beside.shutdown(wait=False, cancel_futures=True)
            for process in RUNNING.copy():
                process.terminate()
            raise
    report.merge(part)
