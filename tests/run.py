#!/usr/bin/env python3
"""Runs all tests, or some; the last line is `N passed, N failed, N skipped`. See README.md."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from harness.report import Report, load_known_gaps
from harness.servers import Manxdb, Mariadb, ServerError
from harness import rust_tests
from harness.suites import QUICK, ROOT, all_suites, missing_tool, suite_environment, target_directory


# Programs of suites that run now.
RUNNING = set()


def parse_arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="comma-separated suites, for example pymysql,sql")
    parser.add_argument("--tier", choices=("quick", "all"), default="all",
                        help="quick: unit tests, SQL files and a few clients, in minutes")
    parser.add_argument("--skip", default="", help="comma-separated suites to leave out")
    parser.add_argument("--server", choices=("manxdb", "mariadb"), default="manxdb",
                        help="mariadb: checks the tests themselves")
    parser.add_argument("--binary", help="an already built manxdb")
    parser.add_argument("--jobs", type=int, choices=range(1, 17), metavar="N", default=3 if (os.cpu_count() or 1) > 1 else 1,
                        help="how many suites run at once (default: 3, which wait more than they work, or 1 on "
                             "one processor)")
    parser.add_argument("--list", action="store_true", help="prints the suites")
    parser.add_argument("suite_arguments", nargs="*", help="after --: passed on to the suites")
    return parser.parse_args()


def run_cargo(report, tier):
    """All Rust tests, or the quick ones; every test counts as a check."""
    programs = rust_tests.build(report)
    if programs is None:
        return
    if tier == "quick":
        # Unit tests, and SQL's files in this process.
        rust_tests.run(report, [program for program in programs if program.kind in ("lib", "bin")])
        files = [program for program in programs if program.title == "sql/it"]
        rust_tests.run(report, files, ["sqllogic::", "connect_statements::"])
        return
    # These run against servers that the other tests need not have.
    stores = [program for program in programs if program.name == "stores"]
    rust_tests.run(report, programs, ignored=stores)
    rust_tests.run_examples(report)


def build_binary(report):
    """Builds the programs as Rust tests have them, so that nothing is built twice; the server's path or None."""
    print("building the server", flush=True)
    code = subprocess.run([*rust_tests.BUILD, "--test", "it"], cwd=ROOT,
                          stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        report.add_failed("cargo", "building the server", f"ended with {code}")
        return None
    return target_directory() / "debug" / "manxdb"


def prepare(suite, report):
    """Builds the suite's program; False when that fails."""
    if not suite.prepare:
        return True
    done = subprocess.run(suite.prepare, cwd=suite.cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        report.add_failed(suite.name, "build", f"{' '.join(suite.prepare)}\n{done.stdout[-3000:]}")
    return done.returncode == 0


def run_program(suite, environment, arguments, report):
    """Runs one suite's program and takes its lines; ends it when its time is over."""
    process = subprocess.Popen([*suite.run, *arguments], cwd=suite.cwd, env=environment, text=True,
                               errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    RUNNING.add(process)
    late = threading.Timer(suite.seconds, lambda: os.killpg(process.pid, 9))
    late.daemon = True  # a run that is told to end does not wait for it
    if "--forever" not in arguments:
        late.start()
    checks = 0
    tail = []
    for line in process.stdout:
        line = line.rstrip("\n")
        if report.take_line(suite.name, line):
            checks += 1
        else:
            tail = [*tail[-15:], line]
            report.say(f"    {line}")
    code, busy = rust_tests.wait_counted(process)
    RUNNING.discard(process)
    report.say(f"   {suite.name}: {busy:.0f} s of CPU but for servers that this program started")
    timed_out = late.finished.is_set()
    late.cancel()
    if timed_out:
        report.add_failed(suite.name, "time limit", f"killed after {suite.seconds} s")
    elif code != 0 and not any(name == suite.name for name, _, _ in report.failures + report.gaps):
        report.add_failed(suite.name, "exit code", f"{code}; last lines: " + " | ".join(tail[-6:]))
    elif checks == 0:
        report.add_failed(suite.name, "no checks", "the suite printed no PASS or FAIL line")


def run_suite(suite, options, binary, report):
    """Starts the server the suite needs and runs it."""
    started = time.monotonic()
    report.say(f"\n== {suite.name}: {suite.about}")
    if tool := missing_tool(suite):
        report.add_failed(suite.name, "needs", f"{tool} is missing (make setup, scripts/setup.sh test)")
        return
    if not prepare(suite, report):
        return
    arguments = options.suite_arguments
    if suite.own_server:
        run_program(suite, suite_environment({}, binary), arguments, report)
    else:
        server = Mariadb() if options.server == "mariadb" else Manxdb(binary)
        try:
            server.start()
            run_program(suite, suite_environment(server.address(), binary), arguments, report)
            if not server.alive():
                report.add_failed(suite.name, "server alive", f"it ended:\n{server.log_tail()}")
            elif server.stop() != 0:
                report.add_failed(suite.name, "orderly stop", f"SIGTERM gave a non-zero exit:\n{server.log_tail()}")
            elif (text := server.log_path.read_text(errors="replace")) and "panicked at" in text:
                report.add_failed(suite.name, "no panic", server.log_tail())
        except ServerError as error:
            report.add_failed(suite.name, "server", str(error))
        finally:
            server.close()
    seconds = time.monotonic() - started
    report.add_time(suite.name, seconds)
    report.say(f"   {suite.name}: {seconds:.0f} s")


def run_suites(suites, options, binary, report):
    """Runs suites, as many at once as were asked for; what each says is printed in one piece when it ends."""
    if options.jobs == 1:
        for suite in suites:
            run_suite(suite, options, binary, report)
        return
    # Those that may take longest begin, so that none of them is left alone at the end.
    waiting = sorted(suites, key=lambda suite: -suite.seconds)

    def run_one(suite):
        print(f"-- {suite.name} begins", flush=True)
        part = report.part()
        run_suite(suite, options, binary, part)
        return part

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for done in as_completed([pool.submit(run_one, suite) for suite in waiting]):
                report.merge(done.result())
        except BaseException:
            # Threads end behind the programs that they wait for, and stop their servers.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in RUNNING.copy():
                os.killpg(process.pid, signal.SIGTERM)
            raise


def choose(options):
    """Suites to run, and whether cargo's tests are among them."""
    suites = all_suites()
    known = {"cargo", *(suite.name for suite in suites)}
    only = {name for name in options.only.split(",") if name}
    skip = {name for name in options.skip.split(",") if name}
    if unknown := (only | skip) - known:
        raise SystemExit(f"no such suite: {', '.join(sorted(unknown))}; have: {', '.join(sorted(known))}")
    if options.tier == "quick" and not only:
        only = {"cargo", *QUICK}
    chosen = [suite for suite in suites
              if (suite.name in only if only else suite.by_default) and suite.name not in skip
              and not (options.server == "mariadb" and suite.only_manxdb)]
    cargo = ("cargo" in only if only else options.server == "manxdb") and "cargo" not in skip
    return chosen, cargo


def main():
    """Runs and reports."""
    options = parse_arguments()
    if options.list:
        print(f"{'cargo':14} all Rust tests")
        for suite in all_suites():
            print(f"{suite.name:14} {suite.about}")
        return 0
    chosen, cargo = choose(options)
    report = Report(known=load_known_gaps() if options.server == "manxdb" else {})
    if os.environ.get("CI"):
        # What would make the next build quicker is most of what a build writes, and CI builds once.
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
    if cargo:
        run_cargo(report, options.tier)
    # Suites run in folders of their own.
    binary = options.binary and os.path.abspath(options.binary)
    if options.server == "manxdb" and not binary and chosen:
        binary = build_binary(report)
    if options.server == "mariadb" or binary:
        run_suites(chosen, options, binary, report)
    return report.close()


if __name__ == "__main__":
    # An orderly end of this program ends the servers it started too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
