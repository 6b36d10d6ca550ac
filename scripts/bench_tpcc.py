"""The TPC-C part of `make bench`: `manxdb bench tpcc --mysql` on both servers in turn."""

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from harness.servers import PASSWORD

WAREHOUSES = 1
THREADS = 8
LEVEL = "repeatable-read"
TRANSACTIONS = ["NewOrder", "Payment", "OrderStatus", "Delivery", "StockLevel"]
SHARES = ["p50", "p99", "p99.9"]


def measure(binary, server, seconds):
    """One run on tables filled anew, as a dictionary; what does not hold afterwards ends the benchmark."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tpcc.json"
        done = subprocess.run(
            [binary, "bench", "tpcc", "--mysql", f"127.0.0.1:{server.port}", "--user", "root", "--isolation", LEVEL,
             "--warehouses", str(WAREHOUSES), "--threads", str(THREADS), "--seconds", str(seconds), "--json", str(path)],
            capture_output=True, text=True, check=False, env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
        if not path.exists():
            raise RuntimeError(f"TPC-C on {server.name}: {done.stderr[-600:]}")
        result = json.loads(path.read_text())
    if result["does_not_hold"]:
        raise RuntimeError(f"TPC-C on {server.name}: {result['does_not_hold']}")
    return result


def run_tpcc(servers, options):
    """{server name: [a result a round]}."""
    results = {server.name: [] for server in servers}
    for number in range(options.rounds):
        for server in servers if number % 2 == 0 else reversed(servers):
            results[server.name].append(measure(options.binary, server, options.seconds))
    print("tpcc: " + "; ".join(f"{name} {rate(runs):.0f} NewOrder/min" for name, runs in results.items()), flush=True)
    return results


def rate(runs):
    """Median of NewOrder transactions a minute."""
    return statistics.median(run["new_orders_per_minute"] for run in runs)


def times(runs, transaction, share):
    """Median over the rounds, in milliseconds."""
    return statistics.median(run["transactions"][transaction]["ms"][share] for run in runs)


def section(results, options):
    """Lines of docs/benchmarks.md."""
    ours, theirs = results["manxdb"], results["mariadb"]
    each = [a["new_orders_per_minute"] / b["new_orders_per_minute"] for a, b in zip(ours, theirs, strict=True)]
    ended = [sum(run["workers_ended"] for run in runs) for runs in (ours, theirs)]
    lines = ["## TPC-C", "",
             f"`manxdb bench tpcc --mysql` on both servers in turn: {WAREHOUSES} warehouse, {THREADS} threads without think time, "
             f"{LEVEL.replace('-', ' ').upper()}, {options.rounds} rounds of {options.seconds} s on tables filled anew; medians. "
             "A worker ends at its first error. The conditions of consistency held after every run.", "",
             "| | ManxDB | MariaDB | ratio (of each round) |", "|---|---|---|---|",
             f"| NewOrder a minute | {rate(ours):.0f} | {rate(theirs):.0f} | **{rate(ours) / rate(theirs):.2f}** "
             f"({', '.join(f'{one:.2f}' for one in each)}) |",
             f"| workers that ended early, of {THREADS * options.rounds} | {ended[0]} | {ended[1]} | |", "",
             "| transaction, milliseconds ManxDB / MariaDB | " + " | ".join(SHARES) + " |", "|---|" + "---|" * len(SHARES)]
    for name in TRANSACTIONS:
        cells = [f"{times(ours, name, share):.2f} / {times(theirs, name, share):.2f}" for share in SHARES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines
