#!/usr/bin/env python3
"""sysbench, parts of a statement, TPC-C and Lobsters on ManxDB and MariaDB, alternating in the same run; writes docs/benchmarks.md.

Both servers start once, with equal durability (every commit on disk), and are loaded with the
same tables. Each workload runs on one, then on the other, several times in turn, so that a busy
neighbour hits both. CPU is the server process's own, from /proc.

    bench.py [--rounds 5] [--seconds 8] [--threads 1,8,32] [--only oltp_insert,parts,tpcc,lobsters] [--rate 100] [--smoke]

With --only, the other parts of the page are kept.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from bench_lobsters import run_lobsters, section
from bench_parts import parts_section, run_parts
from bench_tpcc import run_tpcc
from bench_tpcc import section as tpcc_section
from harness.servers import PASSWORD, Manxdb, Mariadb
from harness.suites import target_directory

# A workload runs at MariaDB's default level on both servers, unless it names one behind an @.
LEVEL = "REPEATABLE READ"
WORKLOADS = ["oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_read_write@SERIALIZABLE", "oltp_insert",
             "oltp_update_index"]
TABLES = 4
ROWS = 10_000
DATABASE = "bench"
LOBSTERS = "lobsters"
PARTS = "parts"
TPCC = "tpcc"
# What parts of docs/benchmarks.md begin with.
PARTS_MARKER = "<!-- parts: made by `make bench` -->"
TPCC_MARKER = "<!-- tpcc: made by `make bench` -->"
LOBSTERS_MARKER = "<!-- lobsters: made by `make bench` -->"
HAND_MARKER = "<!-- below: written by hand, kept by `make bench` -->"
# In the order of the page; sysbench's part comes first, behind no marker.
MARKERS = ["", PARTS_MARKER, TPCC_MARKER, LOBSTERS_MARKER, HAND_MARKER]
AIMS = {"oltp_point_select": 1.5}


@dataclass
class Measured:
    """Results of one workload at one number of threads on one server, a value a round."""

    transactions: list = field(default_factory=list)
    queries: list = field(default_factory=list)
    p95: list = field(default_factory=list)
    cpu: list = field(default_factory=list)
    lost: list = field(default_factory=list)


def client(server, sql):
    """One statement through the command line."""
    subprocess.run(["mariadb", "--no-defaults", "--protocol=tcp", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-e", sql],
                   env={**os.environ, "MYSQL_PWD": PASSWORD}, check=True)


def sysbench(server, workload, command, threads, seconds, extra=()):
    """sysbench's output."""
    arguments = ["sysbench", workload, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.port}",
                 "--mysql-user=root", f"--mysql-password={PASSWORD}", f"--mysql-db={DATABASE}", f"--tables={TABLES}",
                 f"--table-size={ROWS}", f"--threads={threads}", f"--time={seconds}", "--rand-seed=7",
                 "--mysql-ignore-errors=1213,1205,1020,1062", *extra, command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{workload} {command} on {server.name}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout


def measure(server, workload, threads, seconds, into):
    """One round."""
    before = server.cpu_seconds()
    text = sysbench(server, workload.partition("@")[0], "run", threads, seconds)
    spent = server.cpu_seconds() - before
    transactions = float(re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", text)[1])
    total, rate = re.search(r"queries:\s+(\d+)\s+\(([\d.]+) per sec", text).groups()
    into.transactions.append(transactions)
    into.queries.append(float(rate))
    into.lost.append(float(re.search(r"ignored errors:\s+\d+\s+\(([\d.]+) per sec", text)[1]))
    into.p95.append(float(re.search(r"95th percentile:\s+([\d.]+)", text)[1]))
    into.cpu.append(1e6 * spent / max(1, int(total)))


def cpu_of(seconds):
    """Answers the server's CPU microseconds a query of one round."""
    def one_round(server, workload, threads, extra):
        before = server.cpu_seconds()
        text = sysbench(server, workload, "run", threads, seconds, extra)
        spent = server.cpu_seconds() - before
        return 1e6 * spent / max(1, int(re.search(r"queries:\s+(\d+)", text)[1]))
    return one_round


def run_all(servers, options):
    """{(workload, threads): {server name: Measured or the error}}."""
    results = {}
    for workload in [name for name in options.only or WORKLOADS if name not in (PARTS, TPCC, LOBSTERS)]:
        for server in servers:
            client(server, f"SET GLOBAL TRANSACTION ISOLATION LEVEL {workload.partition('@')[2] or LEVEL}")
        for threads in options.threads:
            cell = results[(workload, threads)] = {server.name: Measured() for server in servers}
            for number in range(options.rounds):
                for server in servers if number % 2 == 0 else reversed(servers):
                    if isinstance(cell[server.name], str):
                        continue
                    try:
                        measure(server, workload, threads, options.seconds, cell[server.name])
                    except RuntimeError as error:
                        cell[server.name] = " ".join(str(error).split())[-200:]
            print(f"{workload} x {threads}: " + "; ".join(show(name, one) for name, one in cell.items()), flush=True)
    return results


def show(name, one):
    """One server's medians for the progress line."""
    if isinstance(one, str):
        return f"{name} failed: {one}"
    return f"{name} {statistics.median(one.queries):.0f} queries/s, {statistics.median(one.cpu):.1f} us"


def row(workload, threads, cell):
    """A line of the table."""
    ours, theirs = cell["manxdb"], cell["mariadb"]
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"| {workload} | {threads} | {ours if isinstance(ours, str) else ''} {theirs if isinstance(theirs, str) else ''} | | | | | | |"
    median = statistics.median
    ratio = median(ours.transactions) / median(theirs.transactions)
    spread = (max(ours.transactions) - min(ours.transactions)) / median(ours.transactions)
    aim = AIMS.get(workload, 1.0)
    lost = median(ours.lost), median(theirs.lost)
    return (f"| {workload} | {threads} | {median(ours.transactions):.0f} | {median(theirs.transactions):.0f} | "
            f"**{ratio:.2f}** (aim {aim:.1f}) | {median(ours.p95):.2f} / {median(theirs.p95):.2f} | "
            f"{median(ours.cpu):.1f} / {median(theirs.cpu):.1f} | {lost[0]:.0f} / {lost[1]:.0f} | ±{50 * spread:.0f} % |")


def write_page(made, options):
    """docs/benchmarks.md from {marker: lines}; a part that did not run, and what people wrote, are kept."""
    path = ROOT / "docs" / "benchmarks.md"
    parts = split_page(path.read_text() if path.exists() else "")
    parts |= {marker: "\n".join(lines) for marker, lines in made.items()}
    written = [f"{marker}\n\n{parts[marker]}".strip() for marker in MARKERS]
    path.write_text("\n\n".join(written) + "\n")
    print(f"bench: wrote {path.relative_to(ROOT)}")


def split_page(text):
    """{marker: what stands behind it}; the first part stands behind none."""
    parts = {marker: [] for marker in MARKERS}
    marker = ""
    for line in text.splitlines():
        if line in parts and line:
            marker = line
        else:
            parts[marker].append(line)
    return {marker: "\n".join(lines).strip() for marker, lines in parts.items()}


def sysbench_section(results, options):
    """Lines of the first part."""
    processor = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.machine())
    lines = ["# Benchmarks", "",
             f"Made by `make bench`: sysbench 1.0 with prepared statements, {TABLES} tables of {ROWS:,} rows, "
             f"{options.rounds} rounds of {options.seconds} s, the servers alternating; medians. Client and server share "
             f"{os.cpu_count()} cores of {processor}. Every commit is on disk before it is acknowledged on both "
             "(ManxDB `durability = sync`; MariaDB `innodb_flush_log_at_trx_commit = 1`, no binary log). Both run at "
             f"{LEVEL}, or at the level behind the @; lost transactions are those told to try again.", "",
             "| workload | threads | ManxDB tx/s | MariaDB tx/s | ratio | p95 ms ManxDB / MariaDB | server CPU µs per query ManxDB / MariaDB | lost transactions/s ManxDB / MariaDB | ManxDB's spread |",
             "|---|---|---|---|---|---|---|---|---|"]
    lines += [row(workload, threads, cell) for (workload, threads), cell in results.items()]
    return lines


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--threads", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--rate", type=float, default=100.0, help="pages of Lobsters that arrive each second")
    parser.add_argument("--binary", default=str(target_directory() / "release" / "manxdb"))
    parser.add_argument("--smoke", action="store_true", help="one short round, nothing written")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.seconds = 1, 2
    servers = [Manxdb(options.binary), Mariadb(["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=1G", "--skip-log-bin"])]
    try:
        made = run_chosen(servers, options)
    finally:
        for server in servers:
            server.close()
    if not options.smoke:
        write_page(made, options)


def run_chosen(servers, options):
    """{marker: lines} of the parts of the page that were asked for."""
    made = {}
    chosen = options.only or [*WORKLOADS, PARTS, TPCC, LOBSTERS]
    for server in servers:
        server.start()
        if set(chosen) - {TPCC, LOBSTERS}:
            client(server, f"CREATE DATABASE {DATABASE}")
            sysbench(server, "oltp_read_write", "prepare", 1, 1)
    if results := run_all(servers, options):
        made[""] = sysbench_section(results, options)
    for server in servers:
        client(server, f"SET GLOBAL TRANSACTION ISOLATION LEVEL {LEVEL}")
    if PARTS in chosen:
        made[PARTS_MARKER] = parts_section(run_parts(servers, options, cpu_of(options.seconds)))
    if TPCC in chosen:
        made[TPCC_MARKER] = tpcc_section(run_tpcc(servers, options), options)
    if LOBSTERS in chosen:
        made[LOBSTERS_MARKER] = section(run_lobsters(servers, options), options)
    return made


if __name__ == "__main__":
    main()
