"""Random transactions of real clients on the real server, judged by what each level promises.

Every transaction appends to lists and reads them. Appended numbers are unique, so a read tells
whose appends it saw and in which order; the lists at the end tell the order of all. From that
follow dependencies between committed transactions: one appended before the other (ww), one read
the other's append (wr), one read a list before the other appended to it (rw). A cycle means that
no serial order explains what was seen (Adya; Elle). Doctored histories prove that the judge sees.

    run.py [--seed 1] [--transactions 40]
"""

import argparse
import random
import sys
import threading

import pymysql

from harness.checks import HOST, PASSWORD, PORT, USER, expect, run_check

KEYS = 5
CLIENTS = 6
LEVELS = ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED")
ALLOWED = {
    "SERIALIZABLE": set(),
    "REPEATABLE READ": {"skew", "stale"},
    "READ COMMITTED": {"skew", "stale", "split"},
}


class Transaction:
    """What one client saw and did, in its order."""

    def __init__(self):
        self.steps = []  # ("read", key, list) or ("append", key, element)
        self.plain = True  # nothing but reads without locks
        self.committed = None  # None: nobody knows
        self.began = self.ended = 0


class Clock:
    """Moments in the order in which they happened."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = 0

    def next(self):
        """The next moment, or the next element."""
        with self.lock:
            self.now += 1
            return self.now


class Client(threading.Thread):
    """Runs transactions one after the other."""

    def __init__(self, link, seed, level, count, clock, elements):
        super().__init__(daemon=True)
        self.link, self.random = link, random.Random(seed)
        self.level, self.count, self.clock, self.elements = level, count, clock, elements
        self.done = []
        self.problem = None

    def run(self):
        try:
            cursor = self.link.cursor()
            cursor.execute("USE isolation")
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {self.level}")
            for _ in range(self.count):
                self.transact(cursor)
            self.link.close()
        except Exception as error:  # reported by the check that started it
            self.problem = error

    def transact(self, cursor):
        """One transaction, by itself or between BEGIN and COMMIT."""
        transaction = Transaction()
        transaction.began = self.clock.next()
        alone = self.random.random() < 0.2
        writes = self.random.random() < 0.75
        try:
            if not alone:
                cursor.execute("BEGIN")
            for _ in range(1 if alone else self.random.randint(1, 5)):
                self.act(cursor, transaction, writes)
            if alone or self.random.random() < 0.9:
                if not alone:
                    cursor.execute("COMMIT")
                transaction.committed = True
            else:
                cursor.execute("ROLLBACK")
                transaction.committed = False
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1213, 1205):
                raise
            cursor.execute("ROLLBACK")
            transaction.committed = False
        transaction.ended = self.clock.next()
        self.done.append(transaction)

    def act(self, cursor, transaction, writes):
        """One statement."""
        key = self.random.randrange(KEYS)
        if writes and self.random.random() < 0.5:
            element = self.elements.next()
            cursor.execute("INSERT INTO list VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE v = CONCAT(v, ',', %s)",
                           (key, 100 + key, str(element), str(element)))
            transaction.steps.append(("append", key, element))
            transaction.plain = False
            return
        low, high = sorted((key, self.random.randrange(KEYS)))
        keys, where = self.random.choice((
            ([key], f"k = {key}"), ([key], f"code = 10{key}"),
            (range(low, high + 1), f"k BETWEEN {low} AND {high}"),
            (range(low, high + 1), f"code BETWEEN 10{low} AND 10{high}"),
            (range(KEYS), "v <> ''")))
        lock = self.random.choice(("", "", "", " FOR UPDATE", " FOR SHARE")) if writes else ""
        cursor.execute(f"SELECT k, v FROM list WHERE {where}{lock}")
        transaction.plain &= not lock
        note_read(transaction, keys, cursor.fetchall())


def note_read(transaction, keys, rows):
    """What a query for `keys` answered, absent rows included."""
    found = dict(rows)
    for key in keys:
        value = [int(element) for element in found[key].split(",")] if key in found else []
        transaction.steps.append(("read", key, value))


def cycle(edges, kinds, last):
    """Whether an edge of kind `last` closes a cycle of edges of `kinds`; its ends."""
    nexts = {}
    for before, after, kind in edges:
        if kind in kinds:
            nexts.setdefault(before, set()).add(after)
    for before, after, kind in edges:
        if kind != last:
            continue
        seen, todo = {after}, [after]
        while todo:
            at = todo.pop()
            if at == before:
                return before, after
            todo.extend(nexts.get(at, set()) - seen)
            seen |= nexts.get(at, set())
    return None


def judge(history, final):
    """Kinds of anomalies with an example each. `final` are the lists at the end."""
    found = {}
    writer = {}
    for number, transaction in enumerate(history):
        for kind, key, what in transaction.steps:
            if kind == "append":
                writer[what] = (number, key)
    committed = {number for number, transaction in enumerate(history) if transaction.committed}
    present = {element for elements in final.values() for element in elements}
    for element, (number, _) in writer.items():
        if number in committed and element not in present:
            found["lost"] = f"T{number} appended {element}"
    last_of = {}
    for number in committed:
        for kind, key, what in history[number].steps:
            if kind == "append":
                last_of[number, key] = what
    edges = set()
    for elements in final.values():
        for one, other in zip(elements, elements[1:]):
            edges.add((writer[one][0], writer[other][0], "ww"))
    for number, transaction in enumerate(history):
        own = {}
        for kind, key, what in transaction.steps:
            if kind == "append":
                own.setdefault(key, []).append(what)
                continue
            mine = own.get(key, [])
            if what[len(what) - len(mine):] != mine:
                found["own"] = f"T{number} appended {mine} to {key} and read {what}"
                continue
            seen = what[:len(what) - len(mine)]
            for element in seen:
                source = writer[element][0]
                if source == number or source not in committed:
                    found["dirty"] = f"T{number} read {element} of T{source}"
            if number not in committed or "dirty" in found:
                continue
            order = final.get(key, [])
            if order[:len(seen)] != seen:
                found["order"] = f"T{number} read {seen} of {key}, which became {order}"
                continue
            if seen:
                source = writer[seen[-1]][0]
                if last_of[source, key] != seen[-1]:
                    found["dirty"] = f"T{number} read {seen[-1]}, which T{source} went on from"
                edges.add((source, number, "wr"))
            later = [writer[element][0] for element in order[len(seen):]]
            after = next((other for other in later if other != number), None)
            if after is not None:
                edges.add((number, after, "rw-plain" if transaction.plain else "rw"))
    edges = {(before, after, kind) for before, after, kind in edges if before != after}
    name_cycles(history, committed, edges, found)
    return found


def name_cycles(history, committed, edges, found):
    """Names each kind of cycle by its weakest explanation."""
    if closed := cycle(edges, {"ww", "wr"}, "ww") or cycle(edges, {"ww", "wr"}, "wr"):
        found["circle"] = closed
    # A reader of two states: its reads come before a write that another of its reads shows.
    if closed := cycle(edges | {(b, a, "one") for b, a, kind in edges if kind == "rw-plain"},
                       {"ww", "wr"}, "one"):
        found["split"] = closed
    reads = {"ww", "wr", "rw", "rw-plain"}
    if closed := cycle(edges, reads, "rw") or cycle(edges, reads, "rw-plain"):
        if "split" not in found:
            found["skew"] = closed
    elif "circle" not in found:
        times = {(one, other, "time") for one in committed for other in committed
                 if history[one].ended < history[other].began}
        if closed := cycle(edges | times, reads | {"time"}, "time"):
            found["stale"] = closed


def connect():
    """A connection to the server that the suite is about."""
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True)


def play(servers, level, seed, count):
    """Runs clients on servers of one database, each a function that connects, by turns; the history and
    the lists at its end."""
    cursor = servers[0]().cursor()
    cursor.execute("CREATE DATABASE IF NOT EXISTS isolation")
    cursor.execute("DROP TABLE IF EXISTS isolation.list")
    cursor.execute("CREATE TABLE isolation.list (k INT PRIMARY KEY, code INT NOT NULL,"
                   " v LONGTEXT NOT NULL, UNIQUE KEY by_code (code))")
    clock, elements = Clock(), Clock()
    clients = [Client(servers[number % len(servers)](), seed * 100 + number, level, count, clock, elements)
               for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
        if client.problem:
            raise client.problem
    history = [transaction for client in clients for transaction in client.done]
    last = Transaction()
    last.began = clock.next()
    cursor.execute("SELECT k, v FROM isolation.list")
    note_read(last, range(KEYS), cursor.fetchall())
    last.committed, last.ended = True, clock.next()
    final = {key: value for _, key, value in last.steps}
    return [*history, last], final


def holds(servers, level, seed, count):
    """The level's promise holds, and the servers did not just refuse everything."""
    history, final = play(servers, level, seed, count)
    found = judge(history, final)
    forbidden = {kind: example for kind, example in found.items() if kind not in ALLOWED[level]}
    expect(forbidden, {}, f"{level}, seed {seed}")
    committed = sum(1 for transaction in history if transaction.committed)
    assert committed * 100 > len(history) * 30, f"{committed} of {len(history)} committed"


def made(*transactions):
    """A history written down by hand: steps, one moment a transaction unless told."""
    history = []
    for number, (steps, *times) in enumerate(transactions):
        transaction = Transaction()
        transaction.steps = steps
        transaction.plain = all(step[0] == "read" for step in steps)
        transaction.committed = True
        transaction.began, transaction.ended = times or (0, 1000 + number)
        history.append(transaction)
    return history


def the_judge_sees_planted_anomalies():
    """Each kind in a history made by hand, and none in a clean one."""
    def read(key, *elements):
        return ("read", key, list(elements))

    def append(key, element):
        return ("append", key, element)

    clean = made(([append(1, 1)],), ([read(1, 1), append(1, 2)],))
    expect(judge(clean, {1: [1, 2]}), {}, "clean")
    skew = made(([read(1), append(2, 1)],), ([read(2), append(1, 2)],))
    expect(set(judge(skew, {1: [2], 2: [1]})), {"skew"}, "write skew")
    lost = made(([read(1), append(1, 1)],), ([read(1), append(1, 2)],))
    expect("lost" in judge(lost, {1: [2]}), True, "lost update")
    dirty = made(([append(1, 1)],), ([read(1, 1)],))
    dirty[0].committed = False
    expect("dirty" in judge(dirty, {}), True, "dirty read")
    half = made(([append(1, 1), append(1, 2)],), ([read(1, 1)],))
    expect("dirty" in judge(half, {1: [1, 2]}), True, "intermediate read")
    split = made(([append(1, 1), append(2, 2)],), ([read(1, 1), read(2)],))
    expect(set(judge(split, {1: [1], 2: [2]})), {"split"}, "two states")
    stale = made(([append(1, 1)], 1, 2), ([read(1)], 3, 4))
    expect(set(judge(stale, {1: [1]})), {"stale"}, "stale read")
    circle = made(([append(1, 1), append(2, 4)],), ([append(1, 2), append(2, 3)],))
    expect("circle" in judge(circle, {1: [1, 2], 2: [3, 4]}), True, "dirty write")
    own = made(([append(1, 1), read(1)],))
    expect("own" in judge(own, {1: [1]}), True, "own write unseen")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transactions", type=int, default=40, help="of each client in one history")
    options = parser.parse_args()
    failed = not run_check("the judge sees planted anomalies", the_judge_sees_planted_anomalies)
    for level in LEVELS:
        for seed in range(options.seed, options.seed + 3):
            name = f"{level} seed {seed}"
            failed |= not run_check(name, lambda level=level, seed=seed: holds([connect], level, seed, options.transactions))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
