"""What parts of a statement cost: CPU of the server process, by the difference of workloads.

Protocol: `DO 1` as text, from the packet to the answer, with the system calls. Cached parse and
plan: a point select as text, whose constants are taken out and whose plan is found in the cache,
less the same one prepared.
"""

import statistics
from pathlib import Path

NOTHING = str(Path(__file__).resolve().parent / "do_nothing.lua")
POINT = "oltp_point_select"
# Enough that neither processor sleeps: waking up is not what is asked for.
THREADS = 8
AIM_PROTOCOL = 20.0
AIM_PLAN = 5.0


def run_parts(servers, options, cpu_of):
    """{server name: (protocol, text, prepared)}: medians in microseconds a statement.
    `cpu_of(server, workload, threads, extra arguments)` answers one round."""
    kinds = [(NOTHING, ["--db-ps-mode=disable"]), (POINT, ["--db-ps-mode=disable"]), (POINT, [])]
    rounds = {server.name: [[] for _ in kinds] for server in servers}
    for number in range(options.rounds):
        for server in servers if number % 2 == 0 else reversed(servers):
            for values, (workload, extra) in zip(rounds[server.name], kinds):
                values.append(cpu_of(server, workload, THREADS, extra))
    found = {name: tuple(statistics.median(values) for values in kinds) for name, kinds in rounds.items()}
    for name, (nothing, text, prepared) in found.items():
        print(f"parts: {name} DO 1 {nothing:.1f} us; point select as text {text:.1f} us, prepared {prepared:.1f} us", flush=True)
    return found


def parts_section(found):
    """Lines of its part of the page."""
    ours, theirs = found["manxdb"], found["mariadb"]
    plan = [text - prepared for _, text, prepared in (ours, theirs)]
    return ["## Parts of a statement", "",
            f"Server CPU a statement at {THREADS} threads, by the difference of workloads "
            "([scripts/bench_parts.py](../scripts/bench_parts.py)).", "",
            "| part | ManxDB µs | MariaDB µs | aim µs |", "|---|---|---|---|",
            f"| protocol and its system calls: `DO 1` as text | {ours[0]:.1f} | {theirs[0]:.1f} | {AIM_PROTOCOL:.0f} |",
            f"| parse and plan, cached: a point select as text less a prepared one | {plan[0]:.1f} | {plan[1]:.1f} | {AIM_PLAN:.0f} |"]
