#!/usr/bin/env python3
"""What materialized views save and cost on Lobsters' pages: CPU of the server, in turns on one machine.

    bench_views.py BINARY [--before BINARY] [--scale 0.05] [--seconds 3] [--rounds 3] [--reads 500]

Prints the server's CPU for a page or statement with views, divided by that without; with `--before`,
that of pages without views, divided by that of another build. Ratios of medians over rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pymysql

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from harness.servers import PASSWORD, Manxdb  # noqa: E402

DATABASE = "lobsters"
READING, WRITING = ["Story", "Frontpage", "User"], ["Comment", "CommentVote", "StoryVote", "Submit"]
NOTIFICATIONS = """SELECT read_ribbons.user_id, COUNT(*) AS notifications FROM read_ribbons
    INNER JOIN stories ON stories.id = read_ribbons.story_id
    INNER JOIN comments ON comments.story_id = read_ribbons.story_id
    LEFT JOIN comments AS parent_comments ON parent_comments.id = comments.parent_comment_id
    WHERE read_ribbons.is_following = 1 AND comments.user_id <> read_ribbons.user_id
    AND comments.is_deleted = 0 AND comments.is_moderated = 0 AND comments.upvotes - comments.downvotes >= 0
    AND read_ribbons.updated_at < comments.created_at
    AND ((parent_comments.user_id = read_ribbons.user_id AND parent_comments.upvotes - parent_comments.downvotes >= 0)
    OR (parent_comments.id IS NULL AND stories.user_id = read_ribbons.user_id))
    GROUP BY read_ribbons.user_id HAVING read_ribbons.user_id = %s"""


def cpu(server):
    """Seconds of CPU that a server has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench(options, server, command, *arguments):
    """Output of `manxdb bench lobsters`."""
    url = f"mysql://root@127.0.0.1:{server.port}/{DATABASE}"
    done = subprocess.run([options.binary, "bench", "lobsters", command, "--url", url, "--scale", str(options.scale),
                           *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
    if done.returncode != 0:
        raise RuntimeError(f"lobsters {command}: {done.stderr[-600:]}")
    return done.stdout


def page(options, server, number, kind, *arguments):
    """Microseconds of the server's CPU for a page."""
    result = json.loads(bench(options, server, "run", "--json", "--server-pid", server.process.pid, "--seed", number + 1,
                              "--only", kind, "--connections", 1, "--seconds", options.seconds, "--warm-up", 0.5,
                              *arguments))
    if result["failures"]:
        raise RuntimeError(f"{kind}: {result['failures']}")
    return result["server_cpu_seconds"] * 1e6 / result["pages"]


def statement(options, server):
    """Microseconds of the server's CPU for the statement that counts notifications, keys filled before."""
    link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, database=DATABASE)
    cursor = link.cursor()
    users = range(1, 1 + min(options.reads, int(5_797 * options.scale)))
    for user in users:
        cursor.execute(NOTIFICATIONS, (user,))
    begin = cpu(server)
    for number in range(options.reads):
        cursor.execute(NOTIFICATIONS, (users[number % len(users)],))
    used = cpu(server) - begin
    link.close()
    return used * 1e6 / options.reads


def touched(server):
    """Rows that a read of the statement touches without a view, as the server counts them."""
    link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, database=DATABASE)
    cursor = link.cursor()
    cursor.execute("SET GLOBAL views_auto = 'advise'")
    for user in range(1, 51):
        cursor.execute(NOTIFICATIONS, (user,))
    cursor.execute("SHOW VIEW CANDIDATES")
    rows = [row for row in cursor.fetchall() if "read_ribbons" in row[2]]
    cursor.execute("SET GLOBAL views_auto = 'off'")
    link.close()
    return rows[0][4] if rows else None


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--before", help="another build, for pages without views")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads", type=int, default=500)
    options = parser.parse_args()
    servers = {"plain": Manxdb(options.binary), "views": Manxdb(options.binary)}
    if options.before:
        servers["before"] = Manxdb(options.before)
    try:
        for name, server in servers.items():
            server.start()
            bench(options, server, "fill", *(["--views"] if name == "views" else []))
        plans = {f"{kind}, no notifications": (kind,) for kind in READING + WRITING}
        plans |= {f"{kind}, with notifications": (kind, "--notifications") for kind in READING}
        found = {}
        for number in range(options.rounds):
            order = list(servers.items()) if number % 2 == 0 else list(reversed(servers.items()))
            for what, arguments in [("the statement", None), *plans.items()]:
                for name, server in order:
                    used = statement(options, server) if arguments is None else page(options, server, number, *arguments)
                    found.setdefault(what, {}).setdefault(name, []).append(used)
        print(f"rows that the statement touches without a view: {touched(servers['plain'])}")
        print("| CPU of the server, us | plain | with views | ratio | " + ("before | ratio |" if options.before else ""))
        for what, used in found.items():
            middle = {name: statistics.median(values) for name, values in used.items()}
            line = f"| {what} | {middle['plain']:.0f} | {middle['views']:.0f} | {middle['views'] / middle['plain']:.3f} |"
            if options.before:
                line += f" {middle['before']:.0f} | {middle['plain'] / middle['before']:.3f} |"
            print(line, flush=True)
        link = pymysql.connect(host="127.0.0.1", port=servers["views"].port, user="root", password=PASSWORD)
        cursor = link.cursor()
        cursor.execute(f"SHOW MATERIALIZED VIEWS FROM {DATABASE}")
        for row in cursor.fetchall():
            print(f"{row[1]}: {row[3]} keys, {row[4]} bytes, {row[5]} hits, {row[6]} misses, {row[8]} rows read by deltas")
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
