#!/usr/bin/env python3
"""What materialized views save and cost on Lobsters' pages: CPU of the server, in turns on one machine.

    bench_views.py BINARY [--before BINARY] [--scale 0.05] [--seconds 3] [--rounds 3] [--reads 2000]
                    [--large | --mariadb]

Prints the server's CPU for a page or statement with views, divided by that without; with `--before`,
that of pages without views, divided by that of another build. Ratios of medians over rounds.
With `--mariadb` instead: pages of all kinds with notifications, as fast as they are answered, beside MariaDB.
With `--large` instead: a key of 100,000 rows and commits that touch 10,000 keys, on a table with views
and on one without, whose answers must be the same.
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

from harness.servers import PASSWORD, Manxdb, Mariadb  # noqa: E402

DATABASE = "lobsters"
MANY_ROWS, MANY_KEYS = 100_000, 10_000
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
    """Microseconds of the server's CPU for the statement that counts notifications of those who have read most, keys
    filled before. A site begins without ribbons: pages make them."""
    link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, database=DATABASE)
    cursor = link.cursor()
    cursor.execute("SELECT user_id FROM read_ribbons GROUP BY user_id ORDER BY COUNT(*) DESC, user_id LIMIT 50")
    users = [row[0] for row in cursor.fetchall()]
    for user in users:
        cursor.execute(NOTIFICATIONS, (user,))
    begin = cpu(server)
    for number in range(options.reads):
        cursor.execute(NOTIFICATIONS, (users[number % len(users)],))
    used = cpu(server) - begin
    link.close()
    return used * 1e6 / options.reads


def flat_out(options):
    """Pages a second and CPU a page, with notifications, of MariaDB and of ManxDB without views and with them."""
    servers = {"MariaDB": Mariadb(), "plain": Manxdb(options.binary), "with views": Manxdb(options.binary)}
    found = {name: [] for name in servers}
    try:
        for name, server in servers.items():
            server.start()
            bench(options, server, "fill", *(["--views"] if name == "with views" else []))
        for number in range(options.rounds):
            for name, server in list(servers.items())[::-1 if number % 2 else 1]:
                result = json.loads(bench(options, server, "run", "--json", "--server-pid", server.process.pid, "--seed",
                                          number + 1, "--connections", 8, "--seconds", options.seconds, "--warm-up", 1,
                                          "--notifications"))
                if result["failures"]:
                    raise RuntimeError(f"{name}: {result['failures']}")
                found[name].append((result["pages"] / result["seconds"],
                                    result["server_cpu_seconds"] * 1e6 / result["pages"]))
    finally:
        for server in servers.values():
            server.close()
    print("| with notifications, 8 connections | pages/s | ratio | CPU of the server, us a page | ratio |")
    theirs = [statistics.median(values) for values in zip(*found["MariaDB"], strict=True)]
    for name, values in found.items():
        rate, used = (statistics.median(one) for one in zip(*values, strict=True))
        print(f"| {name} | {rate:.0f} | {rate / theirs[0]:.2f} | {used:.0f} | {used / theirs[1]:.2f} |")


def large_table(cursor, table):
    """A table whose owner -1 has 100,000 rows, and whose owners from 0 to 9,999 have two each."""
    cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, owner INT NOT NULL, kind INT NOT NULL, "
                   "amount INT NOT NULL, KEY (owner))")
    for first in range(0, MANY_ROWS + 2 * MANY_KEYS, 10_000):
        owners = ((number, max(number - MANY_ROWS, -2) // 2) for number in range(first, first + 10_000))
        rows = ", ".join(f"({number}, {owner}, 1, {number % 7})" for number, owner in owners)
        cursor.execute(f"INSERT INTO {table} VALUES {rows}")


def read_key(cursor, table):
    """The rows of the owner that has many."""
    cursor.execute(f"SELECT id, kind FROM {table} WHERE owner = -1")
    return sorted(cursor.fetchall())


def read_keys(cursor, table):
    """A sum for each of the other owners, a thousand of them a statement."""
    found = []
    for first in range(0, MANY_KEYS, 1_000):
        owners = ", ".join(map(str, range(first, first + 1_000)))
        cursor.execute(f"SELECT owner, SUM(amount) FROM {table} WHERE owner IN ({owners}) GROUP BY owner")
        found.extend(cursor.fetchall())
    return sorted(found)


def write_one(cursor, table):
    """A commit of one row of the owner that has many."""
    cursor.execute(f"UPDATE {table} SET kind = kind + 1 WHERE id = {MANY_ROWS // 2}")


def write_all(cursor, table):
    """A commit that changes both rows of each other owner."""
    cursor.execute(f"UPDATE {table} SET amount = amount + 3 WHERE owner >= 0")
    assert cursor.rowcount == 2 * MANY_KEYS, cursor.rowcount


LARGE = [("first read of the key", 1, read_key), ("read of the key", 5, read_key),
         ("commit of one of its rows", 1_000, write_one), ("read of the key", 5, read_key),
         ("first read of all keys", 1, read_keys), ("read of all keys", 5, read_keys),
         ("commit that touches all keys", 5, write_all), ("read of all keys", 5, read_keys)]


def large(options):
    """Keys with many rows and commits that touch many keys, with views and without: the same answers, and their CPU."""
    with Manxdb(options.binary) as server:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        cursor = link.cursor()
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        for table in ("plain", "viewed"):
            large_table(cursor, table)
        cursor.execute("CREATE MATERIALIZED VIEW rows_of AS SELECT id, kind FROM viewed WHERE owner = ?")
        cursor.execute("CREATE MATERIALIZED VIEW sum_of AS SELECT owner, SUM(amount) FROM viewed WHERE owner = ? "
                       "GROUP BY owner")
        print(f"| CPU of the server, ms; {MANY_ROWS} rows of a key, {MANY_KEYS} keys | plain | with views | ratio |")
        for what, times, work in LARGE:
            used, answers = {}, {}
            for table in ("plain", "viewed"):
                begin = cpu(server)
                for _ in range(times):
                    answers[table] = work(cursor, table)
                used[table] = (cpu(server) - begin) * 1e3 / times
            assert answers["plain"] == answers["viewed"], f"{what}: the views answer something else"
            ratio = used["viewed"] / used["plain"] if used["plain"] else float("nan")
            print(f"| {what} | {used['plain']:.2f} | {used['viewed']:.2f} | {ratio:.3f} |", flush=True)
        cursor.execute("SHOW MATERIALIZED VIEWS")
        for row in cursor.fetchall():
            print(f"{row[1]}: {row[3]} keys, {row[4]} bytes, {row[5]} hits, {row[6]} misses, {row[7]} evictions")
            assert row[3] > 0 and row[5] > row[6] and row[7] == 0, f"the view did not answer: {row}"


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--before", help="another build, for pages without views")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads", type=int, default=2_000)
    parser.add_argument("--large", action="store_true", help="large keys and commits instead of pages")
    parser.add_argument("--mariadb", action="store_true", help="all pages as fast as they are answered, beside MariaDB")
    options = parser.parse_args()
    if options.large or options.mariadb:
        (large if options.large else flat_out)(options)
        return
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
            for what, arguments in [*plans.items(), ("the statement", None)]:
                for name, server in order:
                    used = statement(options, server) if arguments is None else page(options, server, number, *arguments)
                    found.setdefault(what, {}).setdefault(name, []).append(used)
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
