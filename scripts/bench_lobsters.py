"""The Lobsters part of `make bench`: `manxdb bench lobsters` on both servers in turn."""

import json
import os
import statistics
import subprocess

from harness.servers import PASSWORD

DATABASE = "lobsters"
SCALE = 0.1
KINDS = ["Story", "Frontpage", "User", "Comments", "Recent", "CommentVote", "StoryVote", "Comment", "Submit"]
# Columns that are read from a run's JSON for each page and statement, in microseconds.
TIMES = ["p50", "p95", "p99", "mean"]


def bench(binary, server, command, *arguments):
    """Output of `manxdb bench lobsters`."""
    url = f"mysql://root@127.0.0.1:{server.port}/{DATABASE}"
    done = subprocess.run([binary, "bench", "lobsters", command, "--url", url, "--scale", str(SCALE), *map(str, arguments)],
                          capture_output=True, text=True, check=False, env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
    if done.returncode != 0:
        raise RuntimeError(f"lobsters {command} on {server.name}: {done.stderr[-600:]}")
    return done.stdout


def measure(options, server, *arguments):
    """One run, as a dictionary; failed pages end the benchmark."""
    result = json.loads(bench(options.binary, server, "run", "--json", "--server-pid", server.process.pid, *arguments))
    if result["failures"]:
        raise RuntimeError(f"lobsters on {server.name}: {result['failures']}")
    return result


def run_lobsters(servers, options):
    """{what: {server name: [a result a round]}}: pages as they arrive, as fast as they go, and kind by kind."""
    for server in servers:
        bench(options.binary, server, "fill")
    seconds = options.seconds
    plans = {"open": ["--rate", options.rate, "--connections", 32, "--seconds", seconds],
             "closed": ["--connections", 8, "--seconds", seconds],
             "notifications": ["--connections", 8, "--seconds", seconds, "--notifications"]}
    kinds = KINDS[:2] if options.smoke else KINDS
    plans |= {kind: ["--only", kind, "--connections", 1, "--seconds", max(1, seconds / 4), "--warm-up", 0.3] for kind in kinds}
    results = {}
    for what, arguments in plans.items():
        cell = results[what] = {server.name: [] for server in servers}
        for number in range(options.rounds):
            for server in servers if number % 2 == 0 else reversed(servers):
                # The seed names the requests: the same for both servers, others every round.
                cell[server.name].append(measure(options, server, "--seed", number + 1, *arguments))
        print(f"lobsters {what}: " + "; ".join(
            f"{name} {middle(runs, 'pages_per_second'):.0f} pages/s, {cpu(runs, 'pages'):.0f} us a page"
            for name, runs in cell.items()), flush=True)
    return results


def middle(runs, key):
    """Median over rounds."""
    return statistics.median(run[key] for run in runs)


def cpu(runs, per):
    """Median of the server's CPU, in microseconds, for each of `pages` or `statements_run`."""
    return statistics.median(1e6 * (run["server_cpu_seconds"] or 0) / max(1, run[per]) for run in runs)


def times(runs, table, name):
    """Medians of TIMES of one page or statement over the rounds that had it; None when none had."""
    rows = [run[table][name] for run in runs if name in run[table]]
    if not rows:
        return None
    return {column: statistics.median(row[column] for row in rows) for column in TIMES}


def time_row(label, ours, theirs):
    """A line of a table of times, in milliseconds."""
    if not ours or not theirs:
        return f"| {label} | too rare at this length | | | |"
    shown = [" / ".join(f"{side[column] / 1000:.2f}" for side in (ours, theirs)) for column in TIMES[:3]]
    ratio = theirs["p50"] / max(1, ours["p50"])
    return f"| {label} | {' | '.join(shown)} | {ratio:.2f} |"


def section(results, options):
    """Lines of docs/benchmarks.md."""
    arriving, flat_out = results["open"], results["closed"]
    lines = ["## Lobsters", "",
             "The statements of the pages of a link-sharing site (`manxdb bench lobsters`, "
             f"[crates/workloads](../crates/workloads/src/lobsters/mod.rs)), data scale {SCALE}, the same requests on both "
             f"servers in turn, {options.rounds} rounds of {options.seconds} s; medians. Ratios above 1 say that ManxDB does better.", "",
             "| load | ManxDB pages/s | MariaDB pages/s | ratio | server CPU µs per page ManxDB / MariaDB | per statement |",
             "|---|---|---|---|---|---|"]
    for label, cell in ((f"{options.rate:g} pages/s arriving", arriving), ("8 connections, flat out", flat_out),
                        ("the same, with the reader's notifications", results["notifications"])):
        ours, theirs = cell["manxdb"], cell["mariadb"]
        rates = middle(ours, "pages_per_second"), middle(theirs, "pages_per_second")
        lines.append(f"| {label} | {rates[0]:.0f} | {rates[1]:.0f} | {rates[0] / rates[1]:.2f} | "
                     f"{cpu(ours, 'pages'):.0f} / {cpu(theirs, 'pages'):.0f} | "
                     f"{cpu(ours, 'statements_run'):.1f} / {cpu(theirs, 'statements_run'):.1f} |")
    lines += ["", "One kind of page at a time, one connection:", "",
              "| page | ManxDB pages/s | MariaDB pages/s | ratio | server CPU µs per page ManxDB / MariaDB |", "|---|---|---|---|---|"]
    for kind in (kind for kind in KINDS if kind in results):
        ours, theirs = results[kind]["manxdb"], results[kind]["mariadb"]
        rates = middle(ours, "pages_per_second"), middle(theirs, "pages_per_second")
        lines.append(f"| {kind} | {rates[0]:.0f} | {rates[1]:.0f} | **{rates[0] / rates[1]:.2f}** | {cpu(ours, 'pages'):.0f} / {cpu(theirs, 'pages'):.0f} |")
    for table, title in (("page", "Sojourn of pages as they arrive (from arrival to the last row)"),
                         ("statement", "The statements of those pages (from sending to the last row)")):
        lines += ["", f"{title}, milliseconds, ManxDB / MariaDB:", "", f"| {table} | p50 | p95 | p99 | ratio of p50 |", "|---|---|---|---|---|"]
        names = sorted({name for runs in arriving.values() for run in runs for name in run[table]})
        lines += [time_row(name, times(arriving["manxdb"], table, name), times(arriving["mariadb"], table, name)) for name in names]
    return lines
