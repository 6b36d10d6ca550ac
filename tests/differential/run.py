"""Runs the same random statements on ManxDB and on MariaDB and compares every answer.

    run.py [--seeds 20] [--first 1] [--statements 200] [--forever] [--seed N]

A difference is cut down to the fewest statements that still show it and printed with its seed.
"""

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

import pymysql

sys.path.insert(0, str(Path(__file__).parent))
from generator import Generator

from harness.servers import PASSWORD, Manxdb, Mariadb

DATABASE = "differential"
SHRINK_SECONDS = 60
# MariaDB's own numbers for what MySQL numbers otherwise.
SAME_ERROR = {4025: 3819, 1969: 3024, 1005: 1824, 167: 1062}


class Side:
    """One server and one connection on it."""

    def __init__(self, server):
        self.server = server.start()
        self.link = None

    def connect(self):
        """A fresh connection to an empty database."""
        if self.link:
            self.link.close()
        self.link = pymysql.connect(host="127.0.0.1", port=self.server.port, user="root", password=PASSWORD,
                                    autocommit=True, charset="utf8mb4", conv={}, read_timeout=60)
        with self.link.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
            cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
            cursor.execute(f"USE {DATABASE}")
            cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")

    def run(self, sql):
        """('error', number, text), ('rows', rows) or ('done', affected rows)."""
        try:
            with self.link.cursor() as cursor:
                count = cursor.execute(sql)
                if cursor.description:
                    return "rows", [tuple(row) for row in cursor.fetchall()]
                return "done", count
        except pymysql.err.MySQLError as error:
            number = error.args[0] if error.args else 0
            return "error", SAME_ERROR.get(number, number), str(error.args[1:])


def differ(ours, theirs, ordered):
    """None, or what differs."""
    if ours[0] != theirs[0]:
        return f"ManxDB {ours}, MariaDB {theirs}"
    if ours[0] == "error":
        return None if ours[1] == theirs[1] else f"ManxDB error {ours[1:]}, MariaDB error {theirs[1:]}"
    if ours[0] == "done":
        return None if ours[1] == theirs[1] else f"ManxDB {ours[1]} rows affected, MariaDB {theirs[1]}"
    key = lambda row: tuple(str(value) for value in row)
    mine, other = (ours[1], theirs[1]) if ordered else (sorted(ours[1], key=key), sorted(theirs[1], key=key))
    if mine == other:
        return None
    wrong = [(a, b) for a, b in zip(mine, other) if a != b][:3]
    return f"{len(mine)} rows, MariaDB {len(other)}; first differences {wrong}"


def compare(sides, script):
    """(index, what differs) of the first difference, or None."""
    for side in sides:
        side.connect()
    for index, (sql, ordered) in enumerate(script):
        difference = differ(sides[0].run(sql), sides[1].run(sql), ordered)
        if difference:
            return index, difference
    return None


def shrink(sides, script, found):
    """The fewest statements that still differ at the last one."""
    last, difference = found
    script = script[:last + 1]
    deadline = time.monotonic() + SHRINK_SECONDS
    step = max(1, len(script) // 2)
    while step >= 1 and time.monotonic() < deadline:
        index = 0
        while index < len(script) - 1 and time.monotonic() < deadline:
            shorter = script[:index] + script[min(index + step, len(script) - 1):]
            again = compare(sides, shorter)
            if again and again[0] == len(shorter) - 1:
                script, difference = shorter, again[1]
            else:
                index += step
        step //= 2
    return script, difference


def run_seed(sides, seed, length):
    """Runs one seed; prints its line; True when both sides agree."""
    script = Generator(random.Random(seed)).script(length)
    found = compare(sides, script)
    if not found:
        print(f"PASS seed {seed} ({length} statements)", flush=True)
        return True
    script, difference = shrink(sides, script, found)
    for sql, _ in script:
        print(f"{sql};", flush=True)
    print(f"FAIL seed {seed}: {difference} at: {' '.join(script[-1][0].split())}", flush=True)
    return False


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--statements", type=int, default=200)
    parser.add_argument("--forever", action="store_true")
    options = parser.parse_args()
    binary = os.environ.get("MANXDB_TEST_BINARY")
    # Without a binary MariaDB is compared with itself: a check of this program.
    sides = []
    good = True
    try:
        sides.append(Side(Manxdb(binary) if binary else Mariadb()))
        sides.append(Side(Mariadb(["--explicit-defaults-for-timestamp=1"])))
        if options.seed is not None:
            seeds = [options.seed]
        elif options.forever:
            seeds = iter(lambda: random.SystemRandom().randrange(2**32), None)
        else:
            seeds = range(options.first, options.first + options.seeds)
        for seed in seeds:
            good = run_seed(sides, seed, options.statements) and good
            if options.forever and not good:
                break
    finally:
        for side in sides:
            side.server.close()
    return 0 if good else 1


if __name__ == "__main__":
    # An orderly end of this program ends the servers it started too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
